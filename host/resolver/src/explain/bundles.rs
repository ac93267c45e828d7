//! Lists of versions in a few words.

use std::collections::BTreeSet;

use crate::{universe::Node, version::VersionRelease};

/// The first characters of a text, with an ellipsis where there are more.
pub(super) fn bounded(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Versions, the lowest first, each once; those between are counted.
pub(super) fn versions<'a>(nodes: impl IntoIterator<Item = &'a Node>) -> Vec<String> {
    let versions: BTreeSet<&VersionRelease> = nodes.into_iter().map(|node| &node.version).collect();
    let mut texts: Vec<String> = versions.iter().map(ToString::to_string).collect();
    if texts.len() > 6 {
        let more = texts.len() - 5;
        let tail = texts.split_off(texts.len() - 2);
        texts.truncate(3);
        texts.push(format!("{more} more"));
        texts.extend(tail);
    }
    texts
}

/// A list with its noun, as in `channels alpha and beta`.
pub(super) fn named(noun: &str, texts: &[String], and: &str) -> String {
    let plural = if texts.len() == 1 { "" } else { "s" };
    format!("{noun}{plural} {}", listed(texts, and))
}

/// A list as in a sentence.
pub(super) fn listed(texts: &[String], and: &str) -> String {
    match texts {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {and} {last}", most.join(", ")),
    }
}
