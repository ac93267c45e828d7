//! Messages for incoming webhooks of Slack, and of servers that accept the same.
//!
//! The texts come from bundles and objects, and must not address people or look like something else: markup is off, and the characters that
//! Slack interprets are escaped. Similar servers read a text as Markdown, whatever the message says, so names after `@` and links with a text are
//! broken.

use chandler_api::AlertSeverity;
use serde_json::{Value, json};

use super::Sender;
use crate::Notification;

/// The most characters of a text before it is escaped. Slack cuts a message after 40,000.
const CHARACTERS: usize = 3000;

/// The words that address everyone in a channel, after `@`.
const EVERYONE: [&str; 5] = ["channel", "everyone", "group", "here", "all"];

pub(super) fn message(sender: Sender<'_>, notification: &Notification) -> Value {
    let Notification { kind, name, severity, reason, message, time, .. } = notification;
    let (color, severity) = match severity {
        AlertSeverity::Info => ("good", "Info"),
        AlertSeverity::Warning => ("danger", "Warning"),
    };
    let title = escaped(&format!("{severity}: {kind} {name}: {reason}"));
    let fields = sender.spec.labels.iter().map(|(name, value)| field(name, value));
    let summary = sender.spec.summary.as_deref().map(|summary| field("Summary", summary));
    let mut value = json!({
        "text": title,
        "mrkdwn": false,
        "parse": "none",
        "link_names": false,
        "unfurl_links": false,
        "unfurl_media": false,
        "attachments": [{
            "color": color,
            "fallback": title,
            "text": escaped(message),
            "mrkdwn_in": [],
            "fields": summary.into_iter().chain(fields).collect::<Vec<_>>(),
            "footer": escaped(&format!("Chandler, Alert {}", sender.alert)),
            "ts": time.as_second(),
        }],
    });
    if let (Some(channel), Some(members)) = (&sender.spec.provider.channel, value.as_object_mut()) {
        members.insert("channel".to_owned(), channel.as_str().into());
    }
    value
}

fn field(title: &str, value: &str) -> Value {
    json!({"title": escaped(title), "value": escaped(value), "short": true})
}

/// A text that Slack shows as it is, and in which servers that read Markdown find no names of users and no links or images with a text.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let (mut rest, mut left, mut before) = (text, CHARACTERS, None);
    while let Some(character) = rest.chars().next() {
        if left == 0 {
            escaped.push('…');
            break;
        }
        left -= 1;
        rest = rest.get(character.len_utf8()..).unwrap_or_default();
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '@' if addresses_everyone(rest) || addresses_someone(before, rest) => escaped.push_str("@ "),
            ']' if rest.starts_with('(') => escaped.push_str("] "),
            character => escaped.push(character),
        }
        before = Some(character);
    }
    escaped
}

/// Whether a text that follows `@` begins with a word that addresses everyone. A longer word such as a name does not count.
fn addresses_everyone(rest: &str) -> bool {
    EVERYONE.iter().any(|word| {
        let begin = rest.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word));
        let next = rest.get(word.len()..).and_then(|after| after.chars().next());
        begin && !next.is_some_and(char::is_alphanumeric)
    })
}

/// Whether `@` between these begins the name of a user. It does not within a word, such as an image by digest.
fn addresses_someone(before: Option<char>, rest: &str) -> bool {
    let next = rest.chars().next();
    !before.is_some_and(|before| before.is_ascii_alphanumeric()) && next.is_some_and(|next| !next.is_whitespace())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_neither_links_nor_addresses_anyone() {
        for (text, expected) in [
            ("<!channel> <https://x|y> a & b", "&lt;!channel&gt; &lt;https://x|y&gt; a &amp; b"),
            ("@channel, @HERE @all", "@ channel, @ HERE @ all"),
            ("registry/app@sha256:0 ann@hereditary", "registry/app@sha256:0 ann@hereditary"),
            ("&lt;", "&amp;lt;"),
            ("@ann.admin (@bob) @@eve @ x@", "@ ann.admin (@ bob) @ @ eve @ x@"),
            ("é@ann _@ann", "é@ ann _@ ann"),
            ("[sign in](https://x) ![](https://y) a[0][1]", "[sign in] (https://x) ![] (https://y) a[0][1]"),
        ] {
            assert_eq!(escaped(text), expected);
        }
        assert_eq!(escaped(&"ä".repeat(5000)).chars().count(), CHARACTERS + 1);
    }

    proptest! {
        #[test]
        fn no_character_that_slack_interprets_is_left(text in r"[<>&@!|#a-zé ]{0,40}|.*|[\[\]()!*_@a-c ]{0,40}|(@(channel|here|all)[ .]?){0,4}") {
            let found = escaped(&text);
            prop_assert!(!found.contains(['<', '>']));
            for (at, _) in found.match_indices('&') {
                prop_assert!(["&amp;", "&lt;", "&gt;"].iter().any(|entity| found[at..].starts_with(entity)), "{}", found);
            }
            for (at, _) in found.match_indices('@') {
                let before = found[..at].chars().next_back();
                prop_assert!(!addresses_everyone(&found[at + 1..]), "{}", found);
                prop_assert!(!addresses_someone(before, &found[at + 1..]), "{}", found);
            }
            prop_assert!(!found.contains("]("), "{}", found);
            let back = found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace(' ', "");
            prop_assert_eq!(back, text.replace(' ', ""), "nothing is lost");
        }
    }
}
