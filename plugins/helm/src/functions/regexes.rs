//! Regular expressions in Go's syntax.

use chandler_go_template::{Call, Element, Function, FunctionError, List, Type, Value};
use regex::Regex;

use super::{Result, int, made, pattern, text};

pub(super) fn find(name: &str) -> Option<Function> {
    use Type::{Int, String};
    Some(match name {
        "regexMatch" => Function::new(&[String, String], |call, a| match compile(call, a) {
            Ok(regex) => Ok(Value::Bool(regex.is_match(&text(a, 1)))),
            Err(FunctionError::Message(_)) => Ok(Value::Bool(false)),
            Err(other) => Err(other),
        }),
        "mustRegexMatch" => {
            Function::new(&[String, String], |call, a| Ok(Value::Bool(compile(call, a)?.is_match(&text(a, 1)))))
        }
        "regexFind" => Function::new(&[String, String], |call, a| first(call, a, true)),
        "mustRegexFind" => Function::new(&[String, String], |call, a| first(call, a, false)),
        "regexFindAll" => Function::new(&[String, String, Int], |call, a| all(call, a, true)),
        "mustRegexFindAll" => Function::new(&[String, String, Int], |call, a| all(call, a, false)),
        "regexReplaceAll" => Function::new(&[String, String, String], |call, a| replace(call, a, true, true)),
        "mustRegexReplaceAll" => Function::new(&[String, String, String], |call, a| replace(call, a, true, false)),
        "regexReplaceAllLiteral" => Function::new(&[String, String, String], |call, a| replace(call, a, false, true)),
        "mustRegexReplaceAllLiteral" => {
            Function::new(&[String, String, String], |call, a| replace(call, a, false, false))
        }
        "regexSplit" => Function::new(&[String, String, Int], |call, a| split(call, a, true)),
        "mustRegexSplit" => Function::new(&[String, String, Int], |call, a| split(call, a, false)),
        "regexQuoteMeta" => Function::new(&[String], |call, a| {
            let mut out = std::string::String::new();
            for character in text(a, 0).chars() {
                if r"\.+*?()|[]{}^$".contains(character) {
                    out.push('\\');
                }
                out.push(character);
            }
            made(call, out)
        }),
        _ => return None,
    })
}

/// Compiles the first argument, and counts the search of the second.
fn compile(call: &mut Call<'_>, a: &[Value]) -> Result<Regex> {
    let source = text(a, 0);
    call.charge(source.len().saturating_mul(64))?;
    call.meter().step(text(a, 1).len() / 16)?;
    pattern::compile_default(&source).map_err(|message| FunctionError::new(format!("error parsing regexp: {message}")))
}

/// As `compile`, with the error of `regexp.MustCompile`, which the functions without `must` use.
fn compile_for(call: &mut Call<'_>, a: &[Value], panics: bool) -> Result<Regex> {
    compile(call, a).map_err(|failure| match failure {
        FunctionError::Message(message) if panics => {
            let source = text(a, 0);
            let quoted = if source.contains('`') { format!("{source:?}") } else { format!("`{source}`") };
            FunctionError::new(format!("regexp: Compile({quoted}): {message}"))
        }
        other => other,
    })
}

fn first(call: &mut Call<'_>, a: &[Value], panics: bool) -> Result {
    let regex = compile_for(call, a, panics)?;
    let from = text(a, 1);
    made(call, regex.find(&from).map_or("", |found| found.as_str()))
}

fn all(call: &mut Call<'_>, a: &[Value], panics: bool) -> Result {
    let regex = compile_for(call, a, panics)?;
    let from = text(a, 1);
    let most = usize::try_from(int(a, 2)).unwrap_or(usize::MAX);
    let found: Vec<&str> = matches(&regex, &from).take(most).filter_map(|(start, end)| from.get(start..end)).collect();
    call.charge(from.len() + found.len() * 32)?;
    Ok(if found.is_empty() { no_strings() } else { Value::strings(found) })
}

/// A nil `[]string`, as Go's functions give when nothing matches.
fn no_strings() -> Value {
    Value::List(List::nil(Element::String))
}

/// The places of all matches as Go finds them: an empty match directly behind another match does not count.
fn matches<'a>(regex: &'a Regex, text: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let mut behind = None;
    regex.find_iter(text).map(|found| (found.start(), found.end())).filter(move |(start, end)| {
        let counts = start != end || behind != Some(*start);
        behind = Some(*end);
        counts
    })
}

fn replace(call: &mut Call<'_>, a: &[Value], expands: bool, panics: bool) -> Result {
    let regex = compile_for(call, a, panics)?;
    let (from, with) = (text(a, 1), text(a, 2));
    let mut out = String::new();
    let (mut at, mut behind) = (0, None);
    for captures in regex.captures_iter(&from) {
        let Some(found) = captures.get(0) else { continue };
        let counts = !found.is_empty() || behind != Some(found.start());
        behind = Some(found.end());
        if !counts {
            continue;
        }
        let before = out.len();
        out.push_str(from.get(at..found.start()).unwrap_or_default());
        if expands {
            expand(&with, &regex, &captures, &mut out);
        } else {
            out.push_str(&with);
        }
        call.charge(out.len() - before)?;
        at = found.end();
    }
    out.push_str(from.get(at..).unwrap_or_default());
    made(call, out)
}

/// `$1`, `${1}`, `$name` and `$$` in a replacement; other dollar signs stay.
fn expand(template: &str, regex: &Regex, captures: &regex::Captures<'_>, out: &mut String) {
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(behind) = after.strip_prefix('$') {
            out.push('$');
            rest = behind;
            continue;
        }
        let (brace, inner) = after.strip_prefix('{').map_or((false, after), |inner| (true, inner));
        let end = inner.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(inner.len());
        let (name, behind) = inner.split_at(end);
        let behind = if brace { behind.strip_prefix('}') } else { Some(behind) };
        let (false, Some(behind)) = (name.is_empty(), behind) else {
            out.push('$');
            rest = after;
            continue;
        };
        let group = match name.parse::<usize>() {
            Ok(number) if name.bytes().all(|byte| byte.is_ascii_digit()) => captures.get(number),
            _ => regex
                .capture_names()
                .enumerate()
                .filter(|(_, known)| *known == Some(name))
                .find_map(|(number, _)| captures.get(number)),
        };
        out.push_str(group.map_or("", |group| group.as_str()));
        rest = behind;
    }
    out.push_str(rest);
}

fn split(call: &mut Call<'_>, a: &[Value], panics: bool) -> Result {
    let regex = compile_for(call, a, panics)?;
    let from = text(a, 1);
    let count = int(a, 2);
    if count == 0 {
        return Ok(no_strings());
    }
    if !text(a, 0).is_empty() && from.is_empty() {
        return Ok(Value::strings([""]));
    }
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let (mut parts, mut begin, mut end) = (Vec::new(), 0, 0);
    for (start, stop) in matches(&regex, &from) {
        if parts.len() + 1 >= most {
            break;
        }
        end = start;
        if stop != 0 {
            parts.push(from.get(begin..end).unwrap_or_default());
        }
        begin = stop;
    }
    if end != from.len() {
        parts.push(from.get(begin..).unwrap_or_default());
    }
    call.charge(from.len() + parts.len() * 32)?;
    Ok(Value::strings(parts))
}
