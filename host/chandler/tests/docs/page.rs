//! A page, and its fenced blocks.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A page of Markdown.
#[derive(Debug)]
pub(crate) struct Page {
    /// Its path from the root.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) blocks: Vec<Block>,
}

/// A fenced block, or a comment that is one.
#[derive(Debug)]
pub(crate) struct Block {
    /// `page:line` of its first line.
    pub(crate) place: String,
    /// The line of the fence in the page, from 1.
    pub(crate) line: usize,
    pub(crate) language: String,
    pub(crate) action: Result<Action, String>,
    /// The file below docs/tutorial that it shows.
    pub(crate) file: Option<String>,
    /// Its lines, without the indentation of the fence.
    pub(crate) text: String,
}

/// What a test does with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    Run,
    Background,
    /// Against the type of its kind; without a kind, as a part of this.
    Validate(String),
    /// Parse, for this reason.
    Parse(String),
    /// Compare with its file only.
    Show,
    /// Not executed, for this reason.
    Skip(String),
}

impl Page {
    pub(crate) fn read(path: &Path) -> Self {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        Self::parse(name, fs::read_to_string(path).unwrap())
    }

    fn parse(name: String, text: String) -> Self {
        let mut blocks = Vec::new();
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let opening = line.trim_start();
            let indentation = line.len() - opening.len();
            let (info, end) = match (opening.strip_prefix("```"), opening.strip_prefix("<!-- console ")) {
                (Some(info), _) => (info.to_owned(), "```"),
                (None, Some(info)) => (format!("console {info}"), "-->"),
                (None, None) => continue,
            };
            let body: Vec<&str> = lines
                .by_ref()
                .map(|(line, _)| line)
                .take_while(|line| line.trim() != end)
                .map(|line| line.get(indentation..).unwrap_or_default())
                .collect();
            blocks.push(Block::new(format!("{name}:{number}"), number, info.trim(), &body));
        }
        Self { name, text, blocks }
    }

    /// Whether it has commands that are run.
    pub(crate) fn is_executed(&self) -> bool {
        self.blocks.iter().any(|block| block.action == Ok(Action::Run))
    }
}

impl Block {
    fn new(place: String, line: usize, info: &str, body: &[&str]) -> Self {
        let (language, rest) = info.split_once(' ').unwrap_or((info, ""));
        let mut rest = rest.trim();
        let mut file = None;
        if let Some(found) = rest.strip_prefix("file=") {
            let (path, after) = found.split_once(' ').unwrap_or((found, ""));
            (file, rest) = (Some(path.to_owned()), after.trim());
        }
        let action = action(language, rest, file.is_some(), &place);
        let text = body.iter().flat_map(|line| [*line, "\n"]).collect();
        Self { place, line, language: language.to_owned(), action, file, text }
    }
}

/// The page whose examples `host/resolver/tests/resolving_docs.rs` runs.
const RESOLVING: &str = "docs/resolving.md:";

fn resolved() -> Action {
    Action::Skip("host/resolver/tests/resolving_docs.rs runs it".to_owned())
}

fn action(language: &str, words: &str, is_file: bool, place: &str) -> Result<Action, String> {
    if let Some(reason) = words.strip_prefix("skip:") {
        return Ok(Action::Skip(reason.trim().to_owned()));
    }
    if let Some(reason) = words.strip_prefix("parsed:") {
        return Ok(Action::Parse(reason.trim().to_owned()));
    }
    match (language, words) {
        ("console", "run") => Ok(Action::Run),
        ("console", "background") => Ok(Action::Background),
        ("mermaid", "") => Ok(Action::Skip("a diagram".to_owned())),
        ("text", "") if place.starts_with("docs/cli.md:") => {
            Ok(Action::Skip("generated, and compared with the help".to_owned()))
        }
        ("text", "answer") | ("json", "problem") if place.starts_with(RESOLVING) => Ok(resolved()),
        ("text", words) if words.starts_with("catalog ") && place.starts_with(RESOLVING) => Ok(resolved()),
        ("yaml" | "json", "") => Ok(Action::Validate("BundleDeployment".to_owned())),
        ("yaml" | "json", words) if words.starts_with("of=") => Ok(Action::Validate(words[3..].to_owned())),
        (_, "") if is_file => Ok(Action::Show),
        _ => {
            Err(format!("`{language} {words}` is neither executed nor validated: add `run`, or `skip:` and the reason"))
        }
    }
}

#[test]
fn blocks_are_found() {
    let text = "a\n```console run\n$ ls\n```\n- b\n  ```yaml of=Pod.spec\n  a:\n    b\n  ```\n<!-- console run\n$ c\n-->\n```sh\nx\n```\n";
    let page = Page::parse("p".to_owned(), text.to_owned());
    let found: Vec<_> =
        page.blocks.iter().map(|block| (block.place.as_str(), block.text.as_str(), &block.action)).collect();
    assert_eq!(found[0], ("p:2", "$ ls\n", &Ok(Action::Run)));
    assert_eq!(found[1], ("p:6", "a:\n  b\n", &Ok(Action::Validate("Pod.spec".to_owned()))));
    assert_eq!(found[2], ("p:10", "$ c\n", &Ok(Action::Run)));
    assert!(found[3].2.as_ref().unwrap_err().contains("add `run`"));
    assert_eq!(found.len(), 4);
}
