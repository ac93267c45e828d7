//! Selects by label the objects that a controller reconciles.
//!
//! The API server evaluates the selector, so objects that do not match are neither transferred nor cached.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use kube::{
    api::ListParams,
    core::{Expression, Selector, SelectorExt as _},
    runtime::watcher,
};

/// A label selector in the syntax of `kubectl --selector`. The default selects every object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSelector(Selector);

/// A text that is not a label selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{requirement:?} is not a requirement on labels: {why} (write `key=value`, `key!=value`, `key in (a,b)`, \
     `key notin (a,b)`, `key` or `!key`, with a comma between two of them)"
)]
pub struct SelectorError {
    /// The requirement that is invalid.
    pub requirement: String,
    /// Why it is invalid.
    pub why: String,
}

impl WatchSelector {
    /// Whether every object is selected.
    pub fn selects_all(&self) -> bool {
        self.0.selects_all()
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.matches(labels)
    }

    /// The labels of a selected object that are needed for an object to be selected: another one that has only these is selected too.
    pub fn needed(&self, labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut needed = BTreeMap::new();
        for requirement in self.0.clone() {
            let (Expression::In(key, _) | Expression::Equal(key, _) | Expression::Exists(key)) = requirement else {
                continue;
            };
            needed.extend(labels.get(&key).map(|value| (key, value.clone())));
        }
        needed
    }

    /// The labels that every selected object has, with these values.
    pub fn implied(&self) -> BTreeMap<String, String> {
        let requirements = self.0.clone().into_iter();
        let pairs = requirements.filter_map(|requirement| match requirement {
            Expression::Equal(key, value) => Some((key, value)),
            Expression::In(key, values) if values.len() == 1 => Some((key, values.into_iter().next()?)),
            _ => None,
        });
        pairs.collect()
    }

    /// The parameters of a watch of the selected objects.
    pub fn watch(&self) -> watcher::Config {
        let config = watcher::Config::default();
        if self.selects_all() { config } else { config.labels_from(&self.0) }
    }

    /// The parameters of a list of the selected objects.
    pub fn list(&self) -> ListParams {
        let parameters = ListParams::default();
        if self.selects_all() { parameters } else { parameters.labels_from(&self.0) }
    }
}

impl fmt::Display for WatchSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for WatchSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut selector = Selector::default();
        for part in split(text) {
            let part = part.trim();
            let wrong = |why| SelectorError { requirement: part.to_owned(), why };
            selector.extend(requirement(part).map_err(wrong)?);
        }
        Ok(Self(selector))
    }
}

/// Splits at the commas outside parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    text.split(|character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
    .collect()
}

fn requirement(text: &str) -> Result<Expression, String> {
    if let Some(key) = text.strip_prefix('!') {
        return Ok(Expression::DoesNotExist(label_key(key)?));
    }
    if let Some((rest, values)) = text.split_once('(') {
        let values = values.strip_suffix(')').ok_or("it does not end with a closing parenthesis")?;
        let values = values.split(',').map(label_value).collect::<Result<BTreeSet<_>, _>>()?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        return match words.as_slice() {
            [key, "in"] => Ok(Expression::In(label_key(key)?, values)),
            [key, "notin"] => Ok(Expression::NotIn(label_key(key)?, values)),
            _ => Err("expected `in` or `notin` between the key and the values in parentheses".to_owned()),
        };
    }
    if let Some((key, value)) = text.split_once("!=") {
        return Ok(Expression::NotEqual(label_key(key)?, label_value(value)?));
    }
    if let Some((key, value)) = text.split_once("==").or_else(|| text.split_once('=')) {
        return Ok(Expression::Equal(label_key(key)?, label_value(value)?));
    }
    Ok(Expression::Exists(label_key(text)?))
}

/// `prefix/name` or `name`: <https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#syntax-and-character-set>.
fn label_key(text: &str) -> Result<String, String> {
    let key = text.trim();
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_subdomain = |prefix: &str| {
        let is_label = |label: &str| {
            let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            is_name(label) && label.bytes().all(legal)
        };
        prefix.len() <= 253 && prefix.split('.').all(is_label)
    };
    if is_name(name) && prefix.is_none_or(is_subdomain) {
        Ok(key.to_owned())
    } else {
        Err(format!("{key:?} is not a label key"))
    }
}

/// Empty, or with the syntax of the name in a key.
fn label_value(text: &str) -> Result<String, String> {
    let value = text.trim();
    if value.is_empty() || is_name(value) {
        Ok(value.to_owned())
    } else {
        Err(format!("{value:?} is not a label value"))
    }
}

/// At most 63 letters, digits, `-`, `_` and `.`, that begin and end with a letter or a digit.
fn is_name(text: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63 && edge(bytes.first()) && edge(bytes.last()) && text.bytes().all(legal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_needed_labels_are_those_that_the_selector_names() {
        let labels = |text: &str| -> BTreeMap<String, String> {
            let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
            pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
        };
        for (selector, all, needed) in [
            ("", "a=1,b=2", ""),
            ("a=1", "a=1,b=2", "a=1"),
            ("a in (1,2),!c,d notin (x)", "a=2,b=2,d=y", "a=2"),
            ("b", "a=1,b=2", "b=2"),
        ] {
            let selector: WatchSelector = selector.parse().unwrap();
            assert_eq!(selector.needed(&labels(all)), labels(needed), "{selector}");
        }
        let selector: WatchSelector = "a=1,b in (2),c in (3,4),d,!e".parse().unwrap();
        assert_eq!(selector.implied(), labels("a=1,b=2"));
    }

    #[test]
    fn the_syntax_of_kubectl_is_accepted() {
        let long = format!("{}/{}={}", "a".repeat(253), "b".repeat(63), "c".repeat(63));
        for (text, written) in [
            ("", ""),
            (" ", ""),
            ("shard=a", "shard=a"),
            (" shard == a ", "shard=a"),
            ("shard=", "shard="),
            ("shard!=a", "shard!=a"),
            ("example.com/shard in (b, a),tier", "example.com/shard in (a,b),tier"),
            ("shard notin(a),!example.com/Run_1", "shard notin (a),!example.com/Run_1"),
            ("shard in (a,)", "shard in (,a)"),
            ("notin", "notin"),
            ("example.com/x=1.0-a_b", "example.com/x=1.0-a_b"),
        ] {
            assert_eq!(text.parse::<WatchSelector>().map(|read| read.to_string()), Ok(written.to_owned()), "{text:?}");
        }
        // 253 characters without a dot are not a DNS subdomain: a label has at most 63.
        assert!(long.parse::<WatchSelector>().is_err());
        assert!("".parse::<WatchSelector>().is_ok_and(|read| read.selects_all()));
        assert!("!a".parse::<WatchSelector>().is_ok_and(|read| !read.selects_all()));
    }

    #[test]
    fn an_invalid_selector_is_refused_with_the_requirement_that_is_invalid() {
        let errors: Vec<String> =
            ["a=b,", "a=b=c", "a in b", "a in (b", "a in (b)c", "a b in (c)", "-a", "a/b/c", "A.com/b", "a=ä", "a>1"]
                .into_iter()
                .map(|text| match text.parse::<WatchSelector>() {
                    Ok(read) => format!("{text} was read as {read}"),
                    Err(SelectorError { requirement, why }) => format!("{text} -> {requirement:?}: {why}"),
                })
                .collect();
        insta::assert_snapshot!(errors.join("\n"), @r#"
        a=b, -> "": "" is not a label key
        a=b=c -> "a=b=c": "b=c" is not a label value
        a in b -> "a in b": "a in b" is not a label key
        a in (b -> "a in (b": it does not end with a closing parenthesis
        a in (b)c -> "a in (b)c": it does not end with a closing parenthesis
        a b in (c) -> "a b in (c)": expected `in` or `notin` between the key and the values in parentheses
        -a -> "-a": "-a" is not a label key
        a/b/c -> "a/b/c": "a/b/c" is not a label key
        A.com/b -> "A.com/b": "A.com/b" is not a label key
        a=ä -> "a=ä": "ä" is not a label value
        a>1 -> "a>1": "a>1" is not a label key
        "#);
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "[ab=!,() /.in-]{0,24}") {
            if let Ok(read) = text.parse::<WatchSelector>() {
                let again = read.to_string().parse::<WatchSelector>();
                prop_assert_eq!(again, Ok(read));
            }
        }
    }
}
