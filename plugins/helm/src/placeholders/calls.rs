//! Calls of functions with placeholders.

use std::collections::BTreeSet;

use chandler_go_template::{FunctionError, Returned, Str, Value};

use super::{Generated, Segment, Set, State, What};

/// Texts that are longer are not searched for digests before the end, unless a function encodes them.
const SEARCHED: usize = 4096;
/// How much of a digest is recognised: a template may shorten it to this.
const DIGEST: usize = 8;

/// Functions that choose among their arguments, or look at them: the result need not contain a placeholder.
const CHOOSING: &[&str] = &[
    "and",
    "or",
    "default",
    "coalesce",
    "ternary",
    "required",
    "fail",
    "include",
    "tpl",
    "get",
    "set",
    "unset",
    "dict",
    "list",
    "tuple",
    "append",
    "mustAppend",
    "push",
    "mustPush",
    "prepend",
    "mustPrepend",
    "concat",
    "merge",
    "mustMerge",
    "mergeOverwrite",
    "mustMergeOverwrite",
    "dig",
    "index",
    "pluck",
    "pick",
    "omit",
    "without",
    "mustWithout",
    "uniq",
    "mustUniq",
    "compact",
    "mustCompact",
    "first",
    "mustFirst",
    "last",
    "mustLast",
    "rest",
    "mustRest",
    "initial",
    "mustInitial",
    "slice",
    "mustSlice",
    "chunk",
    "mustChunk",
    "values",
    "keys",
    "deepCopy",
    "mustDeepCopy",
    "lookup",
    "kindOf",
    "typeOf",
    "fromYaml",
    "fromYamlArray",
    "fromJson",
    "fromJsonArray",
    "mustFromJson",
];

/// Functions that change a text at places that a placeholder hides.
const REWRITING: &[&str] = &[
    "replace",
    "trimAll",
    "trimall",
    "trimSuffix",
    "trimPrefix",
    "regexReplaceAll",
    "mustRegexReplaceAll",
    "regexReplaceAllLiteral",
    "mustRegexReplaceAllLiteral",
    "urlquery",
];

/// The texts of a value: its own, or of the items of a list or map.
pub(super) fn texts(value: &Value) -> Vec<Str> {
    let own = |value: &Value| value.as_string().cloned();
    match value {
        Value::String(text) => vec![text.clone()],
        Value::List(list) if list.as_bytes().is_none() => list.items().iter().filter_map(own).collect(),
        Value::Map(map) => map.entries().iter().filter_map(|(_, value)| own(value)).collect(),
        _ => Vec::new(),
    }
}

/// The result of a call as the template gets it.
pub(super) fn returned(state: &mut State, call: Returned<'_>) -> Result<Value, FunctionError> {
    let Returned { name, arguments, result, place } = call;
    if state.unplaced > 0 {
        let place = place();
        let placed = state.values.len().saturating_sub(state.unplaced);
        state.values.iter_mut().skip(placed).for_each(|value| place.clone_into(&mut value.place));
        state.unplaced = 0;
        return Ok(result);
    }
    // A map is an argument of functions that choose. Its texts are the same afterwards.
    let given: Vec<Str> =
        arguments.iter().filter(|argument| !matches!(argument, Value::Map(_))).flat_map(texts).collect();
    let placeholders: BTreeSet<usize> = given.iter().flat_map(|text| state.placeholders(&text.text())).collect();
    let encodes = matches!(name, "b64enc" | "sha1sum" | "sha256sum" | "sha512sum" | "adler32sum");
    let searched = |text: &&Str| encodes || text.len() <= SEARCHED;
    let has_digest = given.iter().filter(searched).any(|text| state.has_digest(&text.text()));
    if placeholders.is_empty() && !has_digest {
        return Ok(result);
    }
    let refused = |state: &State| {
        let value = placeholders.first().and_then(|id| state.values.get(*id));
        Err(refusal(name, value))
    };
    if encodes {
        let text = given.first().map(|text| text.text().into_owned()).unwrap_or_default();
        if name == "b64enc" {
            let parent = placeholders.first().and_then(|id| state.values.get(*id)).cloned();
            let (function, place) =
                parent.map_or_else(|| (name.to_owned(), place()), |parent| (parent.function, parent.place));
            let value = Generated::new(What::Base64(text), function, place, Vec::new());
            return state.add(value).map(Value::from).map_err(FunctionError::new);
        }
        let digest = result.as_string().map(|text| text.text().chars().take(DIGEST).collect::<String>());
        return match digest.filter(|digest| digest.len() == DIGEST) {
            Some(digest) => {
                state.digests.insert(digest);
                Ok(result)
            }
            None => refused(state),
        };
    }
    if name == "len"
        && let Some(length) = arguments.first().and_then(Value::as_string).and_then(|text| state.length(&text.text()))
    {
        return Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)));
    }
    if !placeholders.is_empty()
        && let Some(value) = symbolic(state, name, arguments)
    {
        return value.map(Value::from).map_err(FunctionError::new);
    }
    let looks = matches!(result, Value::Bool(_)) || CHOOSING.contains(&name);
    // One of a text gives a number or a part.
    let is_part =
        matches!(name, "slice" | "mustSlice" | "index") && matches!(arguments.first(), Some(Value::String(_)));
    if looks && !is_part {
        return Ok(result);
    }
    let results = texts(&result);
    let kept: BTreeSet<usize> = results.iter().flat_map(|text| state.placeholders(&text.text())).collect();
    let is_kept =
        placeholders.is_subset(&kept) && (!has_digest || results.iter().any(|text| state.has_digest(&text.text())));
    if is_kept && !(REWRITING.contains(&name) && rewrites(state, name, arguments, &placeholders)) {
        return Ok(result);
    }
    refused(state)
}

/// Whether a function may change the value of a placeholder that it leaves as it is.
fn rewrites(state: &State, name: &str, arguments: &[Value], placeholders: &BTreeSet<usize>) -> bool {
    let pattern = arguments.first().and_then(Value::as_string).map(|text| text.text().into_owned()).unwrap_or_default();
    let is_plain = !name.to_ascii_lowercase().contains("regex") && !pattern.contains(['=', '+', '/']);
    placeholders.iter().filter_map(|id| state.what(*id)).any(|what| match what {
        What::Random(Set::Bytes, _) | What::Base64(_) => name == "urlquery" || !is_plain,
        What::Random(Set::Strong, _) => name == "urlquery",
        What::Random(..) | What::Uuid | What::Certificate(_) | What::Key(_) => false,
    })
}

fn refusal(name: &str, value: Option<&Generated>) -> FunctionError {
    let of = value.map_or_else(
        || "the digest of a text with a generated value".to_owned(),
        |value| format!("the result of {} ({})", value.function, value.place),
    );
    FunctionError::Refused {
        function: name.to_owned(),
        reason: format!("it changes {of}, which only the cluster has; set the value that it is for"),
    }
}

/// What some functions make of placeholders: another one.
fn symbolic(state: &mut State, name: &str, arguments: &[Value]) -> Option<Result<String, String>> {
    let text = |at: usize| arguments.get(at).and_then(Value::as_string).map(|text| text.text().into_owned());
    let int = |at: usize| match arguments.get(at) {
        Some(Value::Int(value, _)) => Some(*value),
        _ => None,
    };
    match name {
        "b64dec" => match state.what(state.only(text(0)?.trim())?)? {
            What::Base64(text) => Some(Ok(text.clone())),
            _ => None,
        },
        "lower" | "upper" => {
            let id = state.only(&text(0)?)?;
            let (set, length) = match state.what(id)? {
                What::Random(Set::Letters, length) if name == "lower" => (Set::Lower, *length),
                What::Random(Set::Letters, length) => (Set::Upper, *length),
                What::Random(Set::LettersAndDigits, length) if name == "lower" => (Set::LowerAndDigits, *length),
                What::Random(Set::LettersAndDigits, length) => (Set::UpperAndDigits, *length),
                _ => return None,
            };
            Some(derived(state, id, What::Random(set, length)))
        }
        "regexReplaceAllLiteral" | "mustRegexReplaceAllLiteral" => {
            let id = state.only(&text(1)?)?;
            // The symbols of the set are among those that remain.
            let is_covered = text(0)? == r"\W" && text(2)? == "@";
            (is_covered && matches!(state.what(id)?, What::Random(Set::Strong, _))).then(|| text(1).map(Ok))?
        }
        "trunc" => {
            let (count, text) = (int(0)?, text(1)?);
            let length = state.length(&text)?;
            let size = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
            if count < 0 { cut(state, &text, length.saturating_sub(size), length) } else { cut(state, &text, 0, size) }
        }
        "substr" => {
            let (from, to, text) = (int(0)?, int(1)?, text(2)?);
            let length = state.length(&text)?;
            let to = usize::try_from(to).unwrap_or(length).min(length);
            cut(state, &text, usize::try_from(from).unwrap_or(0).min(to), to)
        }
        _ => None,
    }
}

/// A placeholder that is made of another.
fn derived(state: &mut State, id: usize, what: What) -> Result<String, String> {
    let (function, place) =
        state.values.get(id).map(|value| (value.function.clone(), value.place.clone())).unwrap_or_default();
    state.add(Generated::new(what, function, place, vec![id]))
}

/// A part of a text, by the lengths of its values.
fn cut(state: &mut State, text: &str, from: usize, to: usize) -> Option<Result<String, String>> {
    let (mut out, mut begin) = (String::new(), 0);
    let segments = state.segments(text);
    for segment in segments {
        let length = state.segment_length(segment)?;
        let (first, last) = (from.max(begin) - begin, to.min(begin.saturating_add(length)).saturating_sub(begin));
        begin = begin.saturating_add(length);
        if first >= last {
            continue;
        }
        match segment {
            Segment::Text(text) => out.push_str(text.get(first..last)?),
            Segment::Placeholder(id) if (first, last) == (0, length) => {
                out.push_str(&super::token::write(&state.salt, id));
            }
            Segment::Placeholder(id) => match state.what(id)? {
                What::Random(set, _) if *set != Set::Bytes => {
                    match derived(state, id, What::Random(*set, last - first)) {
                        Ok(part) => out.push_str(&part),
                        Err(error) => return Some(Err(error)),
                    }
                }
                _ => return None,
            },
        }
    }
    Some(Ok(out))
}
