//! The advice in printed text: commands between backquotes, and the setting for immutable fields.

use chandler_yaml::Limits;
use serde_json::Value;

/// The words after `chandler` of the first printed command that begins with one of these subcommands.
pub fn command(text: &str, subcommands: &[&str]) -> Option<Vec<String>> {
    // Other text may have backquotes, too.
    let printed = text.split("`chandler ").skip(1).filter_map(|rest| rest.split_once('`'));
    printed
        .map(|(line, _)| words(line))
        .find_map(|words| words.first().is_some_and(|first| subcommands.contains(&first.as_str())).then_some(words))
}

/// The words of a command line, as a shell splits it.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut in_quotes, mut escaped, mut begun) = (Vec::new(), String::new(), false, false, false);
    for c in line.chars() {
        match c {
            c if escaped => {
                word.push(c);
                escaped = false;
            }
            '\\' if !in_quotes => (escaped, begun) = (true, true),
            '\'' => (in_quotes, begun) = (!in_quotes, true),
            ' ' if !in_quotes => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            c => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

/// The value of `spec.rollout.onImmutable` that a message names.
pub fn on_immutable(text: &str) -> Option<Value> {
    let (_, rest) = text.split_once("spec.rollout.onImmutable: {")?;
    let mut depth = 1_usize;
    let end = rest.find(|c| {
        depth = match c {
            '{' => depth + 1,
            '}' => depth - 1,
            _ => depth,
        };
        depth == 0
    })?;
    let flow = format!("{{{}}}", rest.get(..end)?);
    let documents = chandler_yaml::parse(flow.as_bytes(), &Limits::default()).ok()?;
    chandler_yaml::from_node(&documents.first()?.root).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn printed_commands_are_found() {
        let text = "a rule with `, hint: `chandler lint BUNDLE` or `kubectl x`; `chandler install 'my dir' --set 'a='\\''b'` now";
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(command(text, &["install", "upgrade"]), words(&["install", "my dir", "--set", "a='b"]));
        assert_eq!(command(text, &["approve"]), None);
    }

    #[test]
    fn the_setting_in_a_message_is_read() {
        let text = "is immutable; spec.rollout.onImmutable: {kinds: [{group: apps, kind: Deployment, action: Recreate}]} lets {it}";
        let kinds = json!({"kinds": [{"group": "apps", "kind": "Deployment", "action": "Recreate"}]});
        assert_eq!(on_immutable(text), Some(kinds));
        assert_eq!(on_immutable("spec.rollout.onImmutable"), None);
    }
}
