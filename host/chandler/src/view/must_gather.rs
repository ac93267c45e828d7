//! The files of `chandler must-gather`, without secrets and within limits, and their index.

use std::{collections::BTreeMap, fmt::Write as _};

use chandler_values::Redactor;
use serde::Serialize;
use serde_json::{Value, json};

use super::scrubbed::Scrubber;

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

/// Hides secrets, applies the limits and writes the index.
pub fn files(gathered: Gathered) -> Files {
    let Gathered { mut files, mut left_out } = gathered;
    let mut scrubber = Scrubber::default();
    for content in files.values_mut() {
        match content {
            Content::Json(value) => scrubber.object(value),
            Content::Text(text) => *text = scrubber.text(text),
        }
    }
    for item in &mut left_out {
        item.why = scrubber.text(&item.why);
    }
    let redactor = Redactor::of(scrubber.found());
    let (mut written, mut sum) = (BTreeMap::new(), 0_usize);
    for (path, content) in files {
        // A hidden value may be shorter than what is in its place.
        let limit = if matches!(content, Content::Json(_)) { KIND } else { 2 * LOG };
        let bytes = bytes(content, &redactor);
        if bytes.len() > limit || sum.saturating_add(bytes.len()) > SUM {
            let why = format!("{} bytes are more than the limit of one file or of all files", bytes.len());
            left_out.push(LeftOut { what: path, why });
            continue;
        }
        sum += bytes.len();
        written.insert(format!("{DIRECTORY}/{path}"), bytes);
    }
    for item in &mut left_out {
        redactor.hide(&mut item.why);
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
            why: format!("hidden: {} values", scrubber.found().len()),
        },
    ]);
    left_out.sort();
    let index: Vec<Value> = written.iter().map(|(path, bytes)| json!({"path": path, "bytes": bytes.len()})).collect();
    let limits = json!({"object": OBJECT, "kind": KIND, "log": LOG, "sum": SUM});
    let index = json!({"files": index, "leftOut": left_out, "limits": limits});
    written.insert(format!("{DIRECTORY}/index.json"), pretty(&index));
    Files { files: written, left_out }
}

fn bytes(content: Content, redactor: &Redactor) -> Vec<u8> {
    match content {
        Content::Json(mut value) => {
            redactor.hide_in(&mut value);
            pretty(&value)
        }
        Content::Text(text) => redactor.text(&text).into_owned().into_bytes(),
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

    #[test]
    fn files_have_limits_and_the_index_names_what_is_missing() {
        let mut gathered = Gathered::default();
        gathered.files.insert("a.log".into(), Content::Text("x".repeat(2 * LOG + 1)));
        for number in 0..10 {
            gathered.files.insert(format!("b{number}.json"), Content::Json(vec!["y".repeat(1 << 20); 7].into()));
        }
        gathered.leave_out("metrics", "https://u:hunter22@example.com refused");
        let files = files(gathered);
        let sum: usize = files.files.values().map(Vec::len).sum();
        assert!(sum < SUM + (1 << 20), "{sum}");
        let index = String::from_utf8(files.files["chandler-must-gather/index.json"].clone()).unwrap();
        for part in ["a.log", "b9.json", "metrics", "https://(hidden)@example.com refused", "they are never read"] {
            assert!(index.contains(part), "no {part} in {index}");
        }
        assert!(!files.files.contains_key("chandler-must-gather/a.log"));
    }

    #[test]
    fn a_secret_of_one_file_is_hidden_in_all() {
        let mut gathered = Gathered::default();
        gathered
            .files
            .insert("z.json".into(), Content::Json(json!({"spec": {"config": {"password": "hunter2-hunter2"}}})));
        gathered.files.insert("a.log".into(), Content::Text("level=info it was hunter2-hunter2\n".into()));
        let files = files(gathered).files;
        assert_eq!(files["chandler-must-gather/a.log"], b"level=info it was (hidden)\n");
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
