use std::fs;

use proptest::prelude::*;

use crate::{Limits, load, text};

/// Reads a text in both ways; whether the fast one did, and the same.
fn agree(text: &str) -> bool {
    let Some(fast) = load::by_lines(text, &Limits::default()) else { return false };
    let slow = load::by_scanner(text, &Limits::default());
    assert_eq!(Ok(fast), slow, "{text:?}");
    true
}

/// Manifests of the fixtures, as far as they are available.
fn manifests() -> Vec<String> {
    let roots =
        ["corpus/bundles", "registry", "plain", "crds"].into_iter().filter_map(chandler_test_support::needs::fixture);
    let (mut directories, mut texts) = (roots.collect::<Vec<_>>(), Vec::new());
    while let Some(directory) = directories.pop() {
        for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
                texts.extend(fs::read_to_string(&path));
            }
        }
    }
    texts.retain(|text| text::check_characters(text).is_ok());
    texts
}

#[test]
fn published_manifests_are_read_as_by_the_scanner() {
    let texts = manifests();
    let all: usize = texts.iter().map(String::len).sum();
    let fast: usize = texts.iter().filter(|text| agree(text)).map(String::len).sum();
    assert!(fast * 10 >= all * 9, "only {fast} of {all} bytes are read by lines");
}

#[test]
fn what_only_the_scanner_reads_is_left_to_it() {
    for text in [
        "a: 1\tb",
        "a: 1\r\n",
        "--- a\n",
        "...\n",
        "%YAML 1.2\n---\na: 1\n",
        "- a\n",
        "a\n",
        "a: &b 1\n",
        "a: *b\n",
        "a: !!str 1\n",
        "a: [1]\n",
        "a: {b: 1}\n",
        "a: 1 # comment\n",
        "a:\n",
        "a:\nb: 1\n",
        "a:\n  - b\n c: 1\n",
        "a: b: c\n",
        "a: b:\n",
        "a: b\n  c: d\n",
        "a: 'b' c\n",
        "a: \"\\x41\"\n",
        "a: 'b\nc'\n",
        "a: |2\n   b\n",
        "a: |+\n  b\n",
        "a: >\n  b\n   c\n",
        "a: |\n   \n  b\n",
        "a: |\nb: 1\n",
        "a: |\n  b",
        "a:\n  - - b\n",
        "a:\n  -\n",
        "a: 1\n b: 2\n",
        "? a\n: b\n",
        "\"a\": b\n",
    ] {
        assert_eq!(load::by_lines(text, &Limits::default()), None, "{text:?}");
    }
}

#[test]
fn block_style_is_read_as_by_the_scanner() {
    for text in [
        "",
        "# comment\n",
        "---\n---\n",
        "a: 1\n---\nb: 2\n",
        "a: b\n---\n# c\n",
        "a:\n- b\n- c\nd: e\n",
        "a:\n  - b: 1\n    c: 2\n  -   d: 1\n      e:\n      - f\ng: h",
        "a: {}\nb: []\nc: null\nd: ~\n",
        "a: b\n  c\n\n\n  d  \n\ne: f\n",
        "a:\n- b\n  c\n- d\n",
        "a: 'b''c'\nd: 'e\n  f\n\n   g '\nh: ''\n",
        "a: \"b\\\"c\\\\d\\ne\\tf\"\ng: \"h  \n\n  i\n  \"\nj: \"\"\n",
        "a: |\n\n  b\n   c\n\n  \n    \n  # d\n\n# e\nf: |-\n   g\n\n\nh: >-\n  i\n  j\n\n\n  k\nl: >\n\n  m\n",
        "a: http://b:c#d -e ?f\n-b: -c\n-: d\n",
        "a: \u{e4}\u{85}\u{2028}b\nc:\n- '\u{2029}': d\n",
        "y: yes\n1: 2\n<: <<\n",
    ] {
        agree(text);
    }
    assert!(agree("a:\n  - b: 1\n    c: |-\n      d\n\ne: 'f\n  g'\n"));
}

/// Parts of lines that mean something to one of the readers.
fn part() -> impl Strategy<Value = String> {
    let parts = [
        "\n",
        "\n",
        "\n  ",
        "\n    ",
        "\n- ",
        "\n  - ",
        "\n ",
        "\n\n",
        " ",
        "  ",
        "a",
        "b: ",
        "c:",
        "key: v",
        "- ",
        "-",
        "---",
        "---\n",
        "...",
        "'",
        "''",
        "\"",
        "\\",
        "\\\n",
        "\\ ",
        "\\n",
        "|",
        "|-",
        ">",
        ">-",
        "|+",
        "#",
        " #",
        ": ",
        ":",
        "?",
        "{}",
        "[]",
        "&a",
        "*a",
        "!t",
        "<<: ",
        "%",
        "\t",
        "\r",
        "\u{e4}",
        "\u{85}",
        "\u{2028}",
        "null",
        "1",
        "~",
        "@",
        "`",
        ",",
        "=",
        "\na: ",
        "\n  b: ",
        "\n    c: ",
        "\nd:",
        "\n  e:",
    ];
    prop_oneof![proptest::sample::select(parts.to_vec()).prop_map(str::to_owned), "[a-z]{1,3}"]
}

/// A value of a key or an item, with the line break after it.
fn value(depth: u32, indent: usize) -> BoxedStrategy<String> {
    let deeper = " ".repeat(indent + 2);
    let (one, two) = (deeper.clone(), deeper.clone());
    let scalar = prop_oneof![
        " [a-z0-9'\":# -]{0,8}\n",
        "[ ]{1,3}[a-z][a-z :#]{0,6}\n",
        Just(" {}\n".to_owned()),
        " '[a-z \"]{0,5}('')?[ a-z]{0,3}'[ ]{0,2}\n",
        (" ['\"]?[a-z ]{0,6}", "[ \n]{1,3}", "[a-z ]{0,4}['\"]?")
            .prop_map(move |(first, breaks, last)| format!("{first}{breaks}\n{one}{last}\n")),
        " \"[a-z ]{0,4}(\\\\\n[ ]{0,9}(\\\\ )?|\n[ ]{0,9}|\\\\[nt\"\\\\ ]){0,4}[a-z ]{0,4}\"\n",
        (" [|>][-+]?\n[ ]{0,3}", proptest::collection::vec("\n?[ ]{0,2}[a-z#:' -]{0,5}[ ]{0,2}\n", 1..5))
            .prop_map(move |(head, lines)| format!("{head}{two}{}", lines.join(&two))),
    ];
    if depth == 0 {
        return scalar.boxed();
    }
    let extra = prop_oneof![Just(0_usize), Just(2), Just(1)];
    let mapping = extra.clone().prop_flat_map(move |extra| {
        let indent = indent + 2 + extra;
        proptest::collection::vec(entry(depth - 1, indent), 1..4).prop_map(|entries| format!("\n{}", entries.concat()))
    });
    let sequence = extra.prop_flat_map(move |extra| {
        let indent = indent + extra;
        let item = value(depth - 1, indent).prop_map(move |value| format!("{}-{value}", " ".repeat(indent)));
        let mapping = (entry(0, indent + 2), entry(depth - 1, indent + 2))
            .prop_map(move |(one, other)| format!("{}- {}{other}", " ".repeat(indent), one.trim_start_matches(' ')));
        proptest::collection::vec(prop_oneof![item, mapping], 1..4).prop_map(|items| format!("\n{}", items.concat()))
    });
    prop_oneof![4 => scalar, 2 => mapping, 2 => sequence].boxed()
}

fn entry(depth: u32, indent: usize) -> BoxedStrategy<String> {
    ("[a-c-][a-z.]{0,2}", value(depth, indent), "(#c|[ ]{1,4}#c| |)")
        .prop_map(move |(key, value, after)| {
            let after = if after.is_empty() { after } else { format!("{after}\n") };
            format!("{}{key}:{value}{after}", " ".repeat(indent))
        })
        .boxed()
}

/// The texts of each test; `PROPTEST_CASES` changes it.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_as_by_the_scanner(parts in proptest::collection::vec(part(), 0..30)) {
        agree(&parts.concat());
    }

    #[test]
    fn any_block_style_is_read_as_by_the_scanner(entries in proptest::collection::vec(entry(3, 0), 1..4)) {
        agree(&entries.concat());
    }

    #[test]
    fn changed_block_style_is_read_as_by_the_scanner(
        entries in proptest::collection::vec(entry(3, 0), 1..4),
        at in any::<prop::sample::Index>(),
        length in 0_usize..4,
        with in part(),
    ) {
        let text: Vec<char> = entries.concat().chars().collect();
        let at = at.index(text.len());
        let rest = text.iter().skip(at + length);
        agree(&text.iter().take(at).copied().chain(with.chars()).chain(rest.copied()).collect::<String>());
    }
}
