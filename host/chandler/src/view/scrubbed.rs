//! Removes what may be secret from objects and logs before they leave the cluster: `chandler must-gather`.
//!
//! A value is hidden for where it is (a configuration, an environment variable), for its name, or for its look (credentials in a URL, tokens,
//! private keys). The caller hides the same values everywhere else, with [`chandler_values::Redactor`].

use chandler_values::redaction::HIDDEN;
use serde_json::{Map, Value};

/// Members whose values are chosen by users: only the names in them are shown.
const OPAQUE: [&str; 5] = ["config", "values", "data", "stringData", "binaryData"];
/// Members that are left out: a copy of the object, or of its field names.
const LEFT_OUT: [&str; 1] = ["managedFields"];
/// An annotation with a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The domains whose annotations are shown. Values of others may be anything.
const OURS: [&str; 5] =
    ["chandler.dev/", "rukpak.io/", "deppy.io/", "applyset.kubernetes.io/", "deployment.kubernetes.io/"];
/// Parts of names whose values are secrets.
const TELLING: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "token",
    "secret",
    "apikey",
    "privatekey",
    "accesskey",
    "credential",
    "authorization",
    "cookie",
];
/// Ends of names that say where a secret is, or something else about it.
const HARMLESS: [&str; 9] =
    ["name", "namespace", "ref", "seconds", "pullsecret", "pullsecrets", "path", "policy", "count"];
/// How tokens of well-known services begin.
const PREFIXES: [&str; 9] = ["ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "sk-"];
/// Words before credentials in a header.
const SCHEMES: [&str; 2] = ["bearer ", "basic "];
/// The least length in bytes of a hidden value that is hidden everywhere. A shorter one occurs in any text.
const DISTINCT: usize = 8;

/// Hides what may be secret, and remembers what was hidden.
#[derive(Debug, Default)]
pub struct Scrubber {
    found: Vec<Value>,
}

impl Scrubber {
    /// What was hidden, to hide it elsewhere.
    pub fn found(&self) -> &[Value] {
        &self.found
    }

    /// Hides values in an object.
    pub fn object(&mut self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.object(element)),
            Value::Object(members) => self.members(members),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn members(&mut self, members: &mut Map<String, Value>) {
        for name in LEFT_OUT {
            members.remove(name);
        }
        for (name, value) in members.iter_mut() {
            match (name.as_str(), &mut *value) {
                ("annotations", Value::Object(annotations)) => self.annotations(annotations),
                ("env", Value::Array(variables)) => variables.iter_mut().for_each(|variable| self.variable(variable)),
                ("args" | "command", Value::Array(words)) => self.words(words),
                (name, value) if OPAQUE.contains(&name) => self.hide(value, false),
                (name, value @ (Value::String(_) | Value::Number(_))) if is_telling(name) => self.hide(value, true),
                (_, value) => self.object(value),
            }
        }
    }

    fn annotations(&mut self, annotations: &mut Map<String, Value>) {
        annotations.remove(LAST_APPLIED);
        for (name, value) in annotations.iter_mut() {
            if OURS.iter().any(|ours| name.contains(ours)) { self.object(value) } else { self.hide(value, false) }
        }
    }

    /// An environment variable of a container.
    fn variable(&mut self, variable: &mut Value) {
        let is_named = variable.get("name").and_then(Value::as_str).is_some_and(is_telling);
        match variable.get_mut("value") {
            Some(value) => self.hide(value, is_named),
            None => self.object(variable),
        }
    }

    /// The words of a command line.
    fn words(&mut self, words: &mut [Value]) {
        let mut is_value = false;
        for word in words {
            let Some(text) = word.as_str() else { continue };
            match text.split_once('=').filter(|_| text.starts_with('-')) {
                Some((flag, value)) if is_telling(flag) => {
                    self.remember(value, true);
                    *word = format!("{flag}={HIDDEN}").into();
                    is_value = false;
                }
                _ if is_value => {
                    is_value = false;
                    self.hide(word, true);
                }
                _ => {
                    is_value = text.starts_with('-') && !text.contains('=') && is_telling(text);
                    self.object(word);
                }
            }
        }
    }

    /// Hides all scalars of a value. `secret` are also short ones.
    fn hide(&mut self, value: &mut Value, secret: bool) {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(|element| self.hide(element, secret)),
            Value::Object(members) => {
                members.iter_mut().for_each(|(name, member)| self.hide(member, secret || is_telling(name)));
            }
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => {
                let text = std::mem::take(text);
                self.remember(&text, secret);
                *value = HIDDEN.into();
            }
            Value::Number(number) => {
                let number = number.to_string();
                self.remember(&number, secret);
                *value = HIDDEN.into();
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn remember(&mut self, text: &str, secret: bool) {
        if secret || text.len() >= DISTINCT {
            self.found.push(text.into());
        }
    }

    /// Hides what looks like a secret in a log or another text of many lines.
    pub fn lines(&mut self, text: &str) -> String {
        let text = self.private_keys(text);
        text.split_inclusive('\n').map(|line| self.text(line)).collect()
    }

    /// Hides what looks like a secret in a text, such as a message.
    pub fn text(&mut self, text: &str) -> String {
        let text = self.private_keys(text);
        let text = self.urls(&text);
        let text = self.assignments(&text);
        let text = self.headers(&text);
        self.tokens(&text)
    }

    /// Hides PEM blocks with private keys.
    fn private_keys(&mut self, text: &str) -> String {
        let (mut result, mut rest) = (String::new(), text);
        while let Some((before, block)) = rest.split_once("-----BEGIN ") {
            result.push_str(before);
            let label = block.split("-----").next().unwrap_or_default();
            let end = block.find("-----END ").and_then(|at| Some(at + 9 + block.get(at + 9..)?.find("-----")? + 5));
            let (block, after) = block.split_at(end.unwrap_or(block.len()));
            if label.contains("PRIVATE KEY") {
                self.remember(&format!("-----BEGIN {block}"), true);
                result.push_str(HIDDEN);
            } else {
                result.extend(["-----BEGIN ", block]);
            }
            rest = after;
        }
        result + rest
    }

    /// Hides user information, and values of queries and fragments, in URLs.
    fn urls(&mut self, text: &str) -> String {
        let (mut result, mut rest) = (String::new(), text);
        while let Some((before, url)) = rest.split_once("://") {
            result.extend([before, "://"]);
            let end = url.find(|c: char| c.is_whitespace() || "\"'`<>\\".contains(c)).unwrap_or(url.len());
            let (url, after) = url.split_at(end);
            let authority = url.find(['/', '?', '#']).unwrap_or(url.len());
            let (authority, path) = url.split_at(authority);
            match authority.rsplit_once('@') {
                Some((user, host)) => {
                    user.split(':').for_each(|part| self.remember(part, part.len() >= 4));
                    result.extend([HIDDEN, "@", host]);
                }
                None => result.push_str(authority),
            }
            let query = path.find(['?', '#']).unwrap_or(path.len());
            let (path, query) = path.split_at(query);
            result.push_str(path);
            self.query(query, &mut result);
            rest = after;
        }
        result + rest
    }

    fn query(&mut self, query: &str, result: &mut String) {
        for part in query.split_inclusive(['?', '&', '#']) {
            let (pair, separator) = match part.char_indices().next_back() {
                Some((at, '?' | '&' | '#')) => part.split_at(at),
                _ => (part, ""),
            };
            match pair.split_once('=') {
                Some((name, value)) if !value.is_empty() => {
                    self.remember(value, is_telling(name));
                    result.extend([name, "=", HIDDEN]);
                }
                _ => result.push_str(pair),
            }
            result.push_str(separator);
        }
    }

    /// Hides values behind telling names: `password=x`, `"token": "x"`.
    fn assignments(&mut self, text: &str) -> String {
        let (mut result, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['=', ':']) {
            let (before, after) = rest.split_at(at);
            let name = before.trim_end_matches(['"', '\'', '\\', ' ']);
            let name = name.rsplit(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))).next().unwrap_or_default();
            let quotes = |c: char| "\"'\\ ".contains(c);
            let begin = 1 + after.get(1..).map_or(0, |value| value.len() - value.trim_start_matches(quotes).len());
            let value = after.get(begin..).unwrap_or_default();
            let end = value.find(|c: char| c.is_whitespace() || "\"'\\,;&}])".contains(c)).unwrap_or(value.len());
            let is_hidden = value.starts_with(HIDDEN);
            let (value, next) = value.split_at(end);
            let is_scheme = SCHEMES.iter().any(|scheme| value.eq_ignore_ascii_case(scheme.trim_end()));
            result.extend([before, after.get(..begin).unwrap_or_default()]);
            if is_telling(name) && !value.is_empty() && !is_scheme && !is_hidden && !value.starts_with('/') {
                self.remember(value, value.len() >= 6);
                result.push_str(HIDDEN);
                rest = next;
            } else {
                rest = after.get(begin..).unwrap_or_default();
            }
        }
        result + rest
    }

    /// Hides the word after `Bearer` and `Basic`.
    fn headers(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        for scheme in SCHEMES {
            let mut from = 0;
            while let Some(at) = text.to_ascii_lowercase().get(from..).and_then(|rest| rest.find(scheme)) {
                let begin = from + at + scheme.len();
                let rest = text.get(begin..).unwrap_or_default();
                let length = rest.find(|c: char| c.is_whitespace() || "\"'\\,".contains(c)).unwrap_or(rest.len());
                let word = rest.get(..length).unwrap_or_default().to_owned();
                from = begin;
                if word.len() >= DISTINCT && word != HIDDEN {
                    self.remember(&word, true);
                    text.replace_range(begin..begin + length, HIDDEN);
                }
            }
        }
        text
    }

    /// Hides JSON Web Tokens, and tokens of well-known services.
    fn tokens(&mut self, text: &str) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.+/=".contains(c);
        let (mut result, mut rest) = (String::new(), text);
        while !rest.is_empty() {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            // A value may follow its name without a separator that ends a word.
            let value = word.rsplit_once('=').filter(|(_, value)| !value.is_empty()).map_or(word, |(_, value)| value);
            if looks_secret(value) {
                self.remember(value, true);
                result.extend([word.strip_suffix(value).unwrap_or_default(), HIDDEN]);
            } else {
                result.push_str(word);
            }
            let next = after.find(is_word).unwrap_or(after.len());
            let (between, next) = after.split_at(next);
            result.push_str(between);
            rest = next;
        }
        result
    }
}

fn looks_secret(word: &str) -> bool {
    let is_jwt = word.starts_with("eyJ") && word.len() >= 20 && word.contains('.');
    is_jwt || word.len() >= 16 && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
}

/// Whether the value of a member, a variable or a flag with this name is a secret.
fn is_telling(name: &str) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    TELLING.iter().any(|part| plain.contains(part)) && !HARMLESS.iter().any(|end| plain.ends_with(end))
}

#[cfg(test)]
mod tests {
    use chandler_values::Redactor;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn values_that_users_choose_are_hidden_and_names_stay() {
        let mut object = json!({
            "metadata": {
                "name": "harbour", "managedFields": [{"f:spec": 1}],
                "annotations": {LAST_APPLIED: "hunter2", "example.com/note": "hunter2", "chandler.dev/image": "registry.example.com/a:v1"},
            },
            "spec": {
                "config": {"level": "info", "users": [{"name": "ada", "pin": 1234}], "on": true, "none": null},
                "source": {"image": {"ref": "registry.example.com/a:v1", "pullSecret": "pull"}},
                "containers": [{
                    "env": [{"name": "LEVEL", "value": "hunter2"}, {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}],
                    "args": ["--log-format=json", "--api-token=hunter2", "--password", "hunter2", "controller"],
                }],
            },
            "status": {"history": [{"number": 1, "config": {"level": "info"}}], "token": "hunter2"},
        });
        Scrubber::default().object(&mut object);
        insta::assert_snapshot!(serde_json::to_string_pretty(&object).unwrap(), @r#"
        {
          "metadata": {
            "annotations": {
              "chandler.dev/image": "registry.example.com/a:v1",
              "example.com/note": "(hidden)"
            },
            "name": "harbour"
          },
          "spec": {
            "config": {
              "level": "(hidden)",
              "none": null,
              "on": true,
              "users": [
                {
                  "name": "(hidden)",
                  "pin": "(hidden)"
                }
              ]
            },
            "containers": [
              {
                "args": [
                  "--log-format=json",
                  "--api-token=(hidden)",
                  "--password",
                  "(hidden)",
                  "controller"
                ],
                "env": [
                  {
                    "name": "LEVEL",
                    "value": "(hidden)"
                  },
                  {
                    "name": "POD",
                    "valueFrom": {
                      "fieldRef": {
                        "fieldPath": "x"
                      }
                    }
                  }
                ]
              }
            ],
            "source": {
              "image": {
                "pullSecret": "pull",
                "ref": "registry.example.com/a:v1"
              }
            }
          },
          "status": {
            "history": [
              {
                "config": {
                  "level": "(hidden)"
                },
                "number": 1
              }
            ],
            "token": "(hidden)"
          }
        }
        "#);
    }

    #[test]
    fn texts_lose_what_looks_like_a_secret() {
        for (text, expected) in [
            (
                "get https://ada:hunter2@example.com/a?token=hunter2&x=1#t=2 now",
                "get https://(hidden)@example.com/a?token=(hidden)&x=(hidden)#t=(hidden) now",
            ),
            ("oci://registry.example.com:5000/a@sha256:abc", "oci://registry.example.com:5000/a@sha256:abc"),
            ("Authorization: Bearer abcdefgh1", "Authorization: Bearer (hidden)"),
            (r#"{"level":"info","password":"hunter2"}"#, r#"{"level":"info","password":"(hidden)"}"#),
            ("token=hunter2, user=ada", "token=(hidden), user=ada"),
            ("a eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln b", "a (hidden) b"),
            ("x=ghp_0123456789abcdef", "x=(hidden)"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nend", "(hidden)\nend"),
            ("-----BEGIN PRIVATE KEY-----\ncut", "(hidden)"),
            (
                "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
                "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
            ),
            ("secretName: where", "secretName: where"),
            ("rollout of harbour: 3 of 4 objects", "rollout of harbour: 3 of 4 objects"),
        ] {
            assert_eq!(Scrubber::default().text(text), expected, "{text}");
        }
    }

    #[test]
    fn what_was_hidden_is_hidden_elsewhere() {
        let mut scrubber = Scrubber::default();
        scrubber.object(&mut json!({"config": {"greeting": "a long greeting", "password": "abc12"}}));
        let redactor = Redactor::of(scrubber.found());
        assert_eq!(redactor.text("it said a long greeting, abc12"), "it said (hidden), (hidden)");
    }

    proptest! {
        #[test]
        fn no_text_panics_and_a_text_without_marks_stays(text in any::<String>(), plain in "[a-z ]{0,40}") {
            Scrubber::default().text(&text);
            let expected = plain.clone();
            let is_header = SCHEMES.iter().any(|scheme| plain.contains(scheme));
            prop_assert!(is_header || Scrubber::default().text(&plain) == expected);
        }

        #[test]
        fn a_secret_in_any_place_is_hidden(secret in "[A-Za-z0-9]{12,30}") {
            for text in [
                format!("https://u:{secret}@example.com"),
                format!("https://example.com/?access={secret}"),
                format!("password: {secret}"),
                format!("\"clientSecret\":\"{secret}\""),
                format!("Authorization: Basic {secret}"),
            ] {
                prop_assert!(!Scrubber::default().text(&text).contains(&secret), "{}", text);
            }
        }
    }
}
