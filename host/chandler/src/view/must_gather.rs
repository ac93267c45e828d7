//! The files of `chandler must-gather`, without secrets and within limits, and their index.

use std::{collections::BTreeMap, fmt::Write as _};

use chandler_values::redaction::HIDDEN;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    scrubbed::{Finder, MemoryLimits, Scrubber, Vocabulary},
    text::count,
};

/// The directory in the archive.
pub const DIRECTORY: &str = "chandler-must-gather";
/// The largest object, in bytes.
pub const OBJECT: usize = 512 << 10;
/// The most of one kind, in bytes.
pub const KIND: usize = 8 << 20;
/// The largest log of one container, and the largest file of metrics, in bytes.
pub const LOG: usize = 2 << 20;
/// All files together, in bytes.
pub const SUM: usize = 64 << 20;
/// Why texts are missing, if not all values can be looked for.
const TOO_MANY: &str = "more values are hidden than can be looked for in every file; the limits are";

/// What was read.
#[derive(Clone, Debug)]
pub enum Content {
    /// An object or a list of them.
    Json(Value),
    /// A log, or metrics.
    Text(String),
}

/// What is not in the archive, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LeftOut {
    /// What it is.
    pub what: String,
    /// Why it is not there.
    pub why: String,
}

/// Everything that was read, by path below [`DIRECTORY`].
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// The files.
    pub files: BTreeMap<String, Content>,
    /// What could not be read, or was not read.
    pub left_out: Vec<LeftOut>,
}

impl Gathered {
    /// Notes what is not there.
    pub fn leave_out(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.left_out.push(LeftOut { what: what.into(), why: why.into() });
    }
}

/// The files of the archive, in the order of their paths.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// The files, with the index.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What is not there.
    pub left_out: Vec<LeftOut>,
}

/// The limits of the archive.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// A file of JSON, in bytes.
    json: usize,
    /// A file of text, in bytes. A hidden value may be shorter than what is in its place.
    text: usize,
    /// All files together, in bytes.
    sum: usize,
    /// The values that are hidden in all files.
    memory: MemoryLimits,
}

/// Hides secrets, applies the limits and writes the index.
pub fn files(gathered: Gathered, system_namespace: &str) -> Files {
    let limits = Limits { json: KIND, text: 2 * LOG, sum: SUM, memory: MemoryLimits::default() };
    files_within(gathered, Vocabulary::published(system_namespace), limits)
}

fn files_within(gathered: Gathered, mut vocabulary: Vocabulary, limits: Limits) -> Files {
    let Gathered { mut files, mut left_out } = gathered;
    for content in files.values() {
        if let Content::Json(value) = content {
            vocabulary.add_names(value);
        }
    }
    let mut scrubber = Scrubber::new(vocabulary, limits.memory);
    for content in files.values_mut() {
        match content {
            Content::Json(value) => scrubber.object(value),
            Content::Text(text) => *text = scrubber.text(text),
        }
    }
    for item in &mut left_out {
        item.why = scrubber.text(&item.why);
    }
    let finder = scrubber.finder();
    let (mut written, mut sum) = (BTreeMap::new(), 0_usize);
    for (path, content) in files {
        let limit = if matches!(content, Content::Json(_)) { limits.json } else { limits.text };
        let Some(bytes) = bytes(content, finder.as_ref(), &scrubber) else {
            left_out.push(LeftOut { what: path, why: too_many_values(limits.memory) });
            continue;
        };
        if bytes.len() > limit || sum.saturating_add(bytes.len()) > limits.sum {
            let why = format!("{} bytes are more than the limit of one file or of all files", bytes.len());
            left_out.push(LeftOut { what: path, why });
            continue;
        }
        sum += bytes.len();
        written.insert(format!("{DIRECTORY}/{path}"), bytes);
    }
    for item in &mut left_out {
        match &finder {
            Some(finder) => item.why = finder.text(&item.why).into_owned(),
            None if item.why.starts_with(TOO_MANY) => {}
            None => HIDDEN.clone_into(&mut item.why),
        }
    }
    if finder.is_none() {
        let what = "every text in objects and Events that is not public".to_owned();
        left_out.push(LeftOut { what, why: too_many_values(limits.memory) });
    }
    left_out.extend([
        LeftOut { what: "Secrets".to_owned(), why: "they are never read".to_owned() },
        LeftOut {
            what: "ConfigMaps".to_owned(),
            why: "they hold the content and the values of bundles: never read".to_owned(),
        },
        LeftOut {
            what: "values of configurations, annotations and environment variables, and what looks like a secret"
                .to_owned(),
            why: format!("hidden; {} of them also in the other files", count(scrubber.remembered(), "value")),
        },
    ]);
    left_out.sort();
    let index: Vec<Value> = written.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes.len()})).collect();
    let MemoryLimits { values, value, sum } = limits.memory;
    let hidden = json!({"values": values, "value": value, "sum": sum});
    let limits = json!({"object": OBJECT, "kind": KIND, "log": LOG, "sum": SUM, "hidden": hidden});
    let index = json!({"files": index, "leftOut": left_out, "limits": limits});
    written.insert(format!("{DIRECTORY}/index.json"), pretty(&index));
    Files { files: written, left_out }
}

fn too_many_values(MemoryLimits { values, value, sum }: MemoryLimits) -> String {
    format!("{TOO_MANY} {values} values, {value} bytes of one or {sum} bytes together")
}

/// Without a finder, a text is left out, since it may repeat any value.
fn bytes(content: Content, finder: Option<&Finder<'_>>, scrubber: &Scrubber) -> Option<Vec<u8>> {
    match (content, finder) {
        (Content::Json(mut value), Some(finder)) => {
            finder.hide_in(&mut value);
            Some(pretty(&value))
        }
        (Content::Json(mut value), None) => {
            scrubber.hide_all(&mut value);
            Some(pretty(&value))
        }
        (Content::Text(text), Some(finder)) => Some(finder.text(&text).into_owned().into_bytes()),
        (Content::Text(_), None) => None,
    }
}

fn pretty(value: &Value) -> Vec<u8> {
    // JSON can be written as JSON.
    let mut bytes = serde_json::to_vec_pretty(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// A name as a part of a path: what a file system may not take is escaped.
pub fn part(name: &str) -> String {
    let mut part = String::new();
    for (at, byte) in name.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-_".contains(&byte) || byte == b'.' && at > 0;
        if is_plain {
            part.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(part, "%{byte:02X}");
        }
    }
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits =
        Limits { json: 800, text: 400, sum: 3000, memory: MemoryLimits { values: 3, value: 100, sum: 200 } };

    fn file<'a>(files: &'a Files, path: &str) -> Option<&'a str> {
        files.files.get(&format!("{DIRECTORY}/{path}")).map(|bytes| std::str::from_utf8(bytes).unwrap())
    }

    #[test]
    fn files_have_limits_and_the_index_names_what_is_missing() {
        let mut gathered = Gathered::default();
        gathered.files.insert("a.log".into(), Content::Text("x".repeat(401)));
        for number in 0..10 {
            gathered.files.insert(format!("b{number}.json"), Content::Json(vec!["y".repeat(100); 7].into()));
        }
        gathered.leave_out("metrics", "https://u:hunter22@example.com refused");
        let files = files_within(gathered, Vocabulary::default(), SMALL);
        let index = file(&files, "index.json").unwrap();
        let sum: usize = files.files.values().map(Vec::len).sum();
        assert!(sum - index.len() <= SMALL.sum, "{sum}");
        for part in ["a.log", "b9.json", "metrics", "https://(hidden)@example.com refused", "they are never read"] {
            assert!(index.contains(part), "no {part} in {index}");
        }
        assert_eq!(file(&files, "a.log"), None);
        assert!(file(&files, "b0.json").is_some());
    }

    #[test]
    fn a_secret_of_one_file_is_hidden_in_all() {
        let mut gathered = Gathered::default();
        gathered
            .files
            .insert("z.json".into(), Content::Json(json!({"spec": {"config": {"password": "hunter2-hunter2"}}})));
        gathered.files.insert("a.log".into(), Content::Text("level=info it was hunter2-hunter2\n".into()));
        let files = files(gathered, "chandler-system");
        assert_eq!(file(&files, "a.log"), Some("level=info it was (hidden)\n"));
    }

    #[test]
    fn a_value_that_is_a_public_word_is_hidden_only_where_it_is() {
        let words = ["true", "chandler", "Ready", "Progressing", "reconciled", "chandler-system", "harbour-operator"];
        let log = words.join(" ");
        let mut gathered = Gathered::default();
        let config: BTreeMap<&str, &str> = words.iter().map(|word| (*word, *word)).collect();
        let object =
            json!({"metadata": {"name": "harbour-operator"}, "spec": {"config": config, "password": "Progressing"}});
        gathered.files.insert("z.json".into(), Content::Json(object));
        gathered.files.insert("a.log".into(), Content::Text(log.clone()));
        let files = files(gathered, "chandler-system");
        assert_eq!(file(&files, "a.log"), Some(log.as_str()));
        let object: Value = serde_json::from_str(file(&files, "z.json").unwrap()).unwrap();
        let shown = |value: &Value| value != HIDDEN;
        assert!(
            !object["spec"]["config"].as_object().unwrap().values().any(shown) && !shown(&object["spec"]["password"])
        );
    }

    #[test]
    fn with_more_values_than_can_be_looked_for_no_text_is_shown() {
        let mut gathered = Gathered::default();
        let values: Vec<String> = (0..4).map(|number| format!("pl4nted-s3cret-{number}")).collect();
        let mut object = json!({"kind": "Catalog", "metadata": {"name": "quay-side"}, "spec": {"config": values}});
        object["status"] =
            json!({"message": format!("it was {}", values[3]), "time": "2026-01-01T00:00:00Z", "word": values[3]});
        gathered.files.insert("z.json".into(), Content::Json(object));
        gathered.files.insert("a.log".into(), Content::Text(format!("it was {}", values[3])));
        gathered.leave_out("metrics", format!("refused: {}", values[3]));
        let files = files_within(gathered, Vocabulary::default(), SMALL);
        for (path, bytes) in &files.files {
            let text = std::str::from_utf8(bytes).unwrap();
            assert!(!text.contains("pl4nted"), "{path}: {text}");
        }
        assert_eq!(file(&files, "a.log"), None);
        let object = file(&files, "z.json").unwrap();
        assert!(object.contains("quay-side") && object.contains("2026-01-01T00:00:00Z"), "{object}");
        let index = file(&files, "index.json").unwrap();
        assert!(
            index.contains("more values are hidden than can be looked for in every file; the limits are 3 values"),
            "{index}"
        );
    }

    #[test]
    fn names_stay_in_their_directory() {
        for (name, expected) in
            [("a.b-c", "a.b-c"), ("system:a", "system%3Aa"), ("../x", "%2E.%2Fx"), (".", "%2E"), ("", "")]
        {
            assert_eq!(part(name), expected);
        }
    }
}
