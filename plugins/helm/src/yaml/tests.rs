use chandler_go_template::{Map, Value};
use proptest::prelude::*;

use super::*;

/// The text of a hook is read without a line feed at its end. What Helm 3.21 reads there.
#[test]
fn a_block_at_the_end_of_a_text_without_a_line_feed_keeps_none() {
    for (text, expected) in [
        ("k: |\n  a\n  b", "a\nb"),
        ("k: >\n  a\n  b", "a b"),
        ("k: |+\n  a", "a"),
        ("k: |2\n  a >", "a >"),
        ("k: |\n\n\n  c: |\n    x", "\n\nc: |\n  x"),
        ("k: | # x\n  c |\n  c |", "c |\nc |"),
        ("k:\n- b\n- |\n  a >\n  x", "a >\nx"),
        ("k: |\n  a\n# c", "a\n"),
        ("k: |\n  a\n", "a\n"),
        ("k: \"a\\n\"", "a\n"),
        ("k: 'a |'", "a |"),
    ] {
        let value = read(text).unwrap().as_map().and_then(|map| map.get("k")).unwrap();
        let value = value.as_list().and_then(|list| list.items().last().cloned()).unwrap_or(value);
        assert_eq!(value.as_string().unwrap().text(), expected, "{text:?}");
    }
}

/// What Helm 3.21 and 4.2 write for these texts: as a value, as a key, and as an item.
#[test]
fn texts_are_quoted_as_in_helm() {
    for (text, written) in [
        ("%a", "'%a'"),
        ("`a", "'`a'"),
        ("a'b", "a'b"),
        ("a#", "a#"),
        ("a #", "'a #'"),
        ("a:", "'a:'"),
        (":a", ":a"),
        ("?a", "?a"),
        ("? a", "'? a'"),
        ("-a", "-a"),
        ("---", "'---'"),
        ("--- a", "'--- a'"),
        ("a, b", "a, b"),
        ("0b1", "\"0b1\""),
        ("08", "\"08\""),
        ("1.", "\"1.\""),
        (".", "."),
        ("+1", "\"+1\""),
        ("1e", "1e"),
        ("0x", "0x"),
        ("1_", "\"1_\""),
        ("_1", "_1"),
        ("+.inf", "\"+.inf\""),
        ("NaN", "NaN"),
        ("y", "\"y\""),
        ("Off", "\"Off\""),
        ("tRUE", "tRUE"),
        ("~", "\"~\""),
        ("<<", "<<"),
        ("=", "="),
        ("2001-1-1", "\"2001-1-1\""),
        ("2001-01-01 00:00:00", "\"2001-01-01 00:00:00\""),
        ("2001-13-01", "2001-13-01"),
        ("190:20:30.15", "\"190:20:30.15\""),
        ("1:99", "1:99"),
        ("aaa ", "'aaa '"),
        ("a\\b", "a\\b"),
        ("{{", "'{{'"),
        ("é", "é"),
        ("''", "''''''"),
        ("", "\"\""),
        ("1e999", "1e999"),
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("::1", "::1"),
        ("*.x", "'*.x'"),
        ("1__0", "\"1__0\""),
        (".e3", ".e3"),
        ("0x_1", "\"0x_1\""),
        ("a\tb", "\"a\\tb\""),
        ("a\u{feff}", "\"a\\uFEFF\""),
        ("\u{feff}a", "\"\\uFEFF\\x61\""),
        ("\u{1f600}", "\"\\U0001F600\""),
        ("\0", "\"\\0\""),
        ("\u{1b}[0m", "\"\\e[0m\""),
    ] {
        let value = Value::from(text);
        assert_eq!(write(&value).unwrap(), format!("{written}\n"), "{text:?}");
        let map: Map = [(text, Value::int(1))].into_iter().collect();
        assert_eq!(write(&Value::Map(map)).unwrap(), format!("{written}: 1\n"));
        assert_eq!(write(&Value::list(vec![value])).unwrap(), format!("- {written}\n"));
    }
}

#[test]
fn texts_of_several_lines_are_blocks_as_in_helm() {
    for (text, written) in [
        ("x\n\ny", "|-\n  x\n\n  y\n"),
        ("x\n\n\n", "|+\n  x\n\n\n"),
        ("\n", "|2+\n\n"),
        (" \n", "\" \\n\"\n"),
        ("x\n \ny", "\"x\\n \\ny\"\n"),
        ("true\n", "|\n  true\n"),
        ("  x\ny", "|2-\n    x\n  y\n"),
        ("\nx", "|2-\n\n  x\n"),
        ("a\tb\nc", "\"a\\tb\\nc\"\n"),
        ("- a\n- b", "|-\n  - a\n  - b\n"),
        ("\u{1f600}\nx", "\"\\U0001F600\\nx\"\n"),
    ] {
        assert_eq!(write(&Value::from(text)).unwrap(), written, "{text:?}");
    }
    let map: Map = [("x\n\ny", Value::int(1)), ("a\rb", Value::int(2))].into_iter().collect();
    assert_eq!(write(&Value::Map(map)).unwrap(), "? \"a\\rb\"\n: 2\n? |-\n  x\n\n  y\n: 1\n");
}

#[test]
fn long_texts_are_folded_as_in_helm() {
    let words =
        "aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp qqqq rrrr ssss tttt uuuu vvvv";
    let map: Map = [
        ("long", words.to_owned()),
        ("longq", words.replacen("aaaa", "aaaa:", 1)),
        ("longd", words.replacen("aaaa ", "aaaa\t", 1)),
    ]
    .into_iter()
    .collect();
    assert_eq!(
        write(&Value::Map(map)).unwrap(),
        "long: aaaa bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo pppp\n  qqqq rrrr ssss tttt uuuu vvvv\n\
         longd: \"aaaa\\tbbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo\n  pppp qqqq rrrr ssss tttt uuuu vvvv\"\n\
         longq: 'aaaa: bbbb cccc dddd eeee ffff gggg hhhh iiii jjjj kkkk llll mmmm nnnn oooo\n  pppp qqqq rrrr ssss tttt uuuu vvvv'\n"
    );
}

#[test]
fn keys_numbers_and_nesting_are_those_of_helm() {
    let keys = [
        "-x", "_", "9", "10", "A", "a", "a 2", "a-b", "a.b", "a_b", "a2", "a9", "a10", "aB", "ab", "v1", "v2", "v10",
        "z", "é",
    ];
    let map: Map = keys.iter().map(|key| (*key, Value::Nil)).collect();
    let written = write(&Value::Map(map)).unwrap();
    let order: Vec<_> = written.lines().map(|line| line.trim_end_matches(": null").trim_matches('"')).collect();
    assert_eq!(order, keys);
    for keys in [["v10", "v1beta1"], ["a10", "a1b"], ["a1b", "a01"], ["a01", "a2"], ["a01", "a001"], ["x0", "x00"]] {
        let map: Map = keys.iter().map(|key| (*key, Value::Nil)).collect();
        assert_eq!(write(&Value::Map(map)).unwrap(), format!("{}: null\n{}: null\n", keys[0], keys[1]));
    }
    let value = read("lst: [[1, 2], [], {}, {a: [], b: {}, c: [1]}, null]\nf: [1e21, 1e20, 0.1, 1e-7, 12345678901234567890, 1234567.5]\n").unwrap();
    assert_eq!(
        write(&value).unwrap(),
        "f:\n- 1e+21\n- 1e+20\n- 0.1\n- 1e-07\n- 12345678901234567000\n- 1.2345675e+06\nlst:\n- - 1\n  - 2\n- []\n- {}\n- a: []\n  b: {}\n  c:\n  - 1\n- null\n"
    );
    assert_eq!(
        write_pretty(&read("a: [1, {b: [2], t: \"x\\ty\"}]").unwrap()).unwrap(),
        "a:\n  - 1\n  - b:\n      - 2\n    t: \"x\\ty\"\n"
    );
}

#[test]
fn a_block_at_the_end_of_a_text_has_no_line_feed_if_the_text_has_none() {
    for (text, value) in [
        ("a: |\n  x", "x"),
        ("a: |\n  x\n", "x\n"),
        ("a: |+\n  x", "x"),
        ("a: >2-\n  x\n  y", "x y"),
        ("a: |\n  x\n ", "x\n"),
        ("a: \"x\\n\"", "x\n"),
        ("a:\n  b:\n  - |\n    say \"x\"", "say \"x\""),
    ] {
        let read = crate::json::write(&read(text).unwrap(), None, false).unwrap();
        let mut expected = String::new();
        crate::json::quote(value, false, &mut expected);
        assert!(read.contains(&expected), "{text:?}: {read}");
    }
}

fn values() -> impl Strategy<Value = serde_json::Value> {
    let text = prop_oneof![
        "[ -~\n\t]{0,12}",
        "[a-z0-9:#'\" \n_.+-]{0,8}",
        "\\PC{0,6}",
        "(yes|no|null|~|0x1|1e3|1_0|---|- a|2001-01-01|1:30|<<|=)"
    ];
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i32>().prop_map(Into::into),
        text.clone().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            proptest::collection::btree_map("[ -~\n]{0,6}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    /// A written value reads back as itself.
    #[test]
    fn what_is_written_reads_back(value in values()) {
        let value = crate::json::read(&value.to_string()).unwrap();
        let shown = crate::json::write(&value, None, false).unwrap();
        if let Ok(text) = write(&value) {
            let back = read(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            prop_assert_eq!(crate::json::write(&back, None, false).unwrap(), shown, "{}", text);
        }
    }

    #[test]
    fn readers_never_panic(text in "\\PC{0,40}|[-:|>\\[\\]{}\n #'\"a]{0,30}") {
        let _ = read(&text);
        let _ = crate::json::read(&text);
    }
}
