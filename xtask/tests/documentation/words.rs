//! Comments, messages and documentation are plain English: this test finds phrases that read like a translation, and suggests others.
//!
//! A phrase is in the table if it is nearly always wrong here. For a rare correct use, there is [`EXCEPTIONS`].

use std::{fmt::Write as _, fs, path::Path};

use regex::{Match, Regex};

use crate::files;

/// A phrase, by a regular expression.
struct Rule {
    /// The expression. It is applied to whole comments and paragraphs, so a phrase is found across lines.
    phrase: &'static str,
    /// Matches are correct if this matches them, together with the word before. Empty if there are none.
    unless: &'static str,
    /// How to write it.
    instead: &'static str,
}

const fn rule(phrase: &'static str, instead: &'static str) -> Rule {
    Rule { phrase, unless: "", instead }
}

/// The beginning of a sentence. A string literal may begin with one.
macro_rules! sentence {
    ($rest:literal) => {
        concat!(r#"(?:^|[.!?:] |")"#, $rest)
    };
}

const RULES: &[Rule] = &[
    rule(
        sentence!(r"Has (?:a|an|all|each|every|its|some|that|the|these|this|those) "),
        "say what the function does: `Creates the CRD`, not `Has the API server serve the kind`",
    ),
    rule(
        sentence!(
            r"The same(?:[.,:]| (?:after|as|at|but|by|for|from|in|of|on|once|through|to|when|where|with|without) )"
        ),
        "name the thing, or compare: `Like [`apply`], ...`",
    ),
    rule(r"\b[Tt]hat of\b", "use a possessive or repeat the noun: `the spec's release`"),
    rule(r"\b[Tt]hose of\b", "use a possessive or repeat the noun: `the rules come from OLM`"),
    rule(r"\bnone (?:if|unless|when|where|while)\b", "write `or `None` if ...`, or `Empty if ...` for a list"),
    rule(r"\b(?:has|have|had) not (?:a|an|any|its|that|the|their|this)\b", "write `lacks`"),
    Rule {
        phrase: r"\b(?:is|are|was|were) no \w+",
        unless: r"^[Tt]here |no (?:better|good|larger|less|longer|more|one|other|shorter|smaller|such|worse)$",
        instead: "write `is not a`",
    },
    rule(r"\b[Ww]ho(?:ever|soever)\b", "name the actor: `a user who`, `any client that`"),
    rule(r"\b(?:[Nn]obody|[Ss]omebody) (?:can|else|has|is|may|must|was|who|whose|will)\b", "name the actor"),
    rule(r"\bin vain\b", "write `without success`, or say what fails"),
    rule(r"\bno more(?:[.,;:)]|$)", "write `no longer`, or name the thing: `no more files`"),
    rule(r"\b(?:go|goes|going|gone|went) on\b", "write `continues` or `keeps running`"),
    rule(r"\b[Tt]ime alone\b", "write `a retry`, or say which action is needed"),
    rule(r"\b(?:said|say|says|saying) of\b", "write `about`, or name the information: `the message about`"),
    rule(r"\b(?:is|are|be|not) told\b", "write `is reported`, `is shown`"),
    rule(r"\b[Mm]end(?:s|ed|ing)?\b|\bput(?:s|ting)? right\b", "write `fix` or `repair`"),
    rule(r"\b(?:as good as|so much as)\b", "say it directly"),
    rule(r"\b(?:hereby|thereby|therefrom|therein|thereof|thereto|whereby|wherein|whereof)\b", "start a new sentence"),
    rule(
        sentence!(
            r"What (?:is|was|are|were|cannot|can|must|may|has) (?:[\w'`-]+ ){1,8}(?:are|belongs|can|cannot|comes|counts?|goes|has|is|keeps?|may|must|needs?|stays?|was|will)\b"
        ),
        "name the subject: `Installed packages stay`, not `What is installed stays`",
    ),
];

/// Correct uses: a part of the path, the phrase, and the reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("plugins/registry/", "none if", "`none` is the value of a field"),
    ("xtask/tests/documentation/words.rs", "", "this table"),
];

/// Where text is written by people, in addition to [`FILES`]. Fixtures were written by others.
const DIRECTORIES: &[&str] = &["deploy", "docs", "host", "plugins", "sdk", "tests", "wit", "xtask"];
const FILES: &[&str] = &["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "Cargo.toml", "README.md"];
const EXTENSIONS: &[&str] = &["md", "rs", "snap", "toml", "wit", "yaml"];
const OTHERS: &[&str] = &["fixtures", "node_modules"];

/// Text without line breaks, and the lines that it is from.
#[derive(Default)]
struct Passage {
    text: String,
    /// The first byte of each line in the text, and its number.
    lines: Vec<(usize, usize)>,
}

impl Passage {
    fn push(&mut self, line: &str, number: usize) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        self.lines.push((self.text.len(), number));
        self.text.push_str(line);
    }

    fn line(&self, position: usize) -> usize {
        let after = self.lines.partition_point(|(start, _)| *start <= position);
        self.lines.get(after.saturating_sub(1)).map_or(0, |(_, number)| *number)
    }
}

/// How a line begins that is a comment, in the order in which they are tried.
fn comments(extension: &str) -> &'static [&'static str] {
    match extension {
        "rs" | "wit" => &["///", "//!", "//"],
        "toml" | "yaml" => &["#"],
        _ => &[],
    }
}

/// The prose of a page: without fenced blocks, and with the code in its lines emptied, since programs print that.
fn prose(page: &str) -> Vec<String> {
    let code = Regex::new("`[^`]*`").unwrap();
    files::prose(page).into_iter().map(|line| code.replace_all(line, "``").into_owned()).collect()
}

/// The text of a file: each run of lines of one kind of comment, and each run of other lines, up to an empty one.
fn passages(text: &str, extension: &str) -> Vec<Passage> {
    let (mut all, mut current, mut kind) = (Vec::new(), Passage::default(), None);
    let lines = if extension == "md" { prose(text) } else { text.lines().map(str::to_owned).collect() };
    for (index, line) in lines.iter().enumerate() {
        let line = line.trim();
        let comment = comments(extension).iter().find(|start| line.starts_with(**start));
        let line = comment.map_or(line, |start| line.trim_start_matches(start).trim_start());
        // A string literal goes to the next line after a backslash.
        let line = line.trim_end_matches('\\').trim_end();
        if comment != kind || line.is_empty() {
            all.push(std::mem::take(&mut current));
            kind = comment;
        }
        if !line.is_empty() {
            current.push(line, index + 1);
        }
    }
    all.push(current);
    all.retain(|passage| !passage.text.is_empty());
    all
}

/// The phrases of the table in a text: position, the phrase, and how to write it.
fn phrases<'a>(text: &'a str, rules: &[(Regex, Option<Regex>, &'static str)]) -> Vec<(usize, &'a str, &'static str)> {
    let all = rules.iter().flat_map(|(phrase, unless, instead)| {
        let correct = |found: &Match| {
            let before = text.get(..found.start()).unwrap_or_default().trim_end();
            let word = before.rfind(|c: char| !c.is_alphanumeric()).map_or(0, |at| at + 1);
            unless.as_ref().is_some_and(|unless| text.get(word..found.end()).is_some_and(|text| unless.is_match(text)))
        };
        let wrong = phrase.find_iter(text).filter(move |found| !correct(found));
        wrong.map(|found| (found.start(), found.as_str().trim_matches(['.', ':', ' ', '"']), *instead))
    });
    all.collect()
}

fn compiled() -> Vec<(Regex, Option<Regex>, &'static str)> {
    let compile = |text: &str| Regex::new(text).unwrap_or_else(|error| panic!("{error}"));
    let unless = |rule: &Rule| (!rule.unless.is_empty()).then(|| compile(rule.unless));
    RULES.iter().map(|rule| (compile(rule.phrase), unless(rule), rule.instead)).collect()
}

#[test]
fn text_is_plain_english() {
    let (root, rules, mut paths) = (files::root(), compiled(), Vec::new());
    let left_out = |path: &Path| OTHERS.iter().any(|other| path.ends_with(other));
    for path in DIRECTORIES.iter().chain(FILES) {
        files::find(&root.join(path), EXTENSIONS, &left_out, &mut paths);
    }
    paths.sort();
    let (mut report, mut used) = (String::new(), vec![false; EXCEPTIONS.len()]);
    for path in &paths {
        let Ok(text) = fs::read_to_string(path) else { continue };
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let path = path.strip_prefix(&root).unwrap().to_string_lossy();
        for passage in passages(&text, extension) {
            for (position, phrase, instead) in phrases(&passage.text, &rules) {
                let excepted =
                    EXCEPTIONS.iter().position(|(part, excepted, _)| path.contains(part) && phrase.contains(excepted));
                match excepted.and_then(|index| used.get_mut(index)) {
                    Some(used) => *used = true,
                    None => writeln!(report, "{path}:{}: {phrase:?}: {instead}", passage.line(position)).unwrap(),
                }
            }
        }
    }
    assert!(report.is_empty(), "phrases that read like a translation:\n{report}");
    let unused: Vec<_> =
        EXCEPTIONS.iter().zip(&used).filter(|(_, used)| !**used).map(|(exception, _)| exception).collect();
    assert!(unused.is_empty(), "exceptions without a use: {unused:?}");
    assert!(paths.len() > 1_000, "the files are found: {}", paths.len());
}

#[test]
fn phrases_are_found_across_lines_and_correct_uses_are_not() {
    let rules = compiled();
    let found = |text: &str, extension: &str| -> Vec<(usize, String)> {
        let all = passages(text, extension);
        let found = all.iter().flat_map(|passage| {
            phrases(&passage.text, &rules)
                .into_iter()
                .map(|(position, phrase, _)| (passage.line(position), phrase.to_owned()))
        });
        found.collect()
    };
    for (text, extension, expected) in [
        ("/// The release: that\n/// of the spec.\nfn f() {}", "rs", vec![(1, "that of")]),
        ("fn f() {\n    // Has a file this name.\n}", "rs", vec![(2, "Has a")]),
        ("let text = \"it is no \\\n    number\";", "rs", vec![(1, "is no number")]),
        ("a: 1\n# Whoever reads it.\nb: 2", "yaml", vec![(2, "Whoever")]),
        (
            "The same, in text.\n\nWhat is installed stays.",
            "md",
            vec![(1, "The same,"), (3, "What is installed stays")],
        ),
        ("As `that of`:\n```sh\nis no file\n```\n- is no file", "md", vec![(5, "is no file")]),
        ("// There is no such file, which is no longer read.\n// Whether it has the same name.", "rs", vec![]),
        ("/// The same files make the same image.\n/// What is in it.", "rs", vec![]),
        ("/// The value.\n\n/// Of a list.", "rs", vec![]),
    ] {
        let expected: Vec<_> = expected.into_iter().map(|(line, phrase)| (line, phrase.to_owned())).collect();
        assert_eq!(found(text, extension), expected, "{text}");
    }
}
