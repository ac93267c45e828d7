use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::flatten_lists;

fn read(text: &str) -> Vec<Value> {
    let documents = parse(text.as_bytes(), &Limits::default()).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    documents.iter().map(|document| document.root.to_json()).collect()
}

fn one(text: &str) -> Value {
    let mut values = read(text);
    assert_eq!(values.len(), 1, "{text:?}");
    values.remove(0)
}

fn refusal(text: &str) -> String {
    parse(text.as_bytes(), &Limits::default()).unwrap_err().to_string()
}

/// facts: the results of `sigs.k8s.io/yaml` for scalars.
#[test]
fn scalars_are_parsed_as_yaml_1_1_in_go() {
    for (text, value) in [
        ("", Value::Null),
        ("~", Value::Null),
        ("NULL", Value::Null),
        ("yes", json!(true)),
        ("On", json!(true)),
        ("y", json!(true)),
        ("N", json!(false)),
        ("off", json!(false)),
        ("tRue", json!("tRue")),
        ("\"yes\"", json!("yes")),
        ("'1'", json!("1")),
        ("0644", json!(420)),
        ("0o17", json!(15)),
        ("089", json!(89)),
        ("0x1F", json!(31)),
        ("0b101", json!(5)),
        ("-0x10", json!(-16)),
        ("1_000", json!(1000)),
        ("+12", json!(12)),
        ("9223372036854775807", json!(9_223_372_036_854_775_807_i64)),
        ("18446744073709551615", json!(18_446_744_073_709_551_615_u64)),
        ("100000000000000000000", json!(1e20)),
        ("1.0", json!(1)),
        ("1e3", json!(1000)),
        ("1.5", json!(1.5)),
        (".5", json!(0.5)),
        ("1e-7", json!(1e-7)),
        ("1e", json!("1e")),
        ("1e999", json!("1e999")),
        ("-.5e1", json!(-5)),
        ("08", json!(8)),
        ("0x", json!("0x")),
        ("0xfffffffffffffffff", json!("0xfffffffffffffffff")),
        ("-0xfffffffffffffffff", json!("-0xfffffffffffffffff")),
        ("0o7777777777777777777777777777", json!("0o7777777777777777777777777777")),
        ("07777777777777777777777777777", json!(7.777_777_777_777_778e27)),
        ("_1", json!("_1")),
        ("1__0_", json!(10)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("-9223372036854775809", json!(-9_223_372_036_854_775_809.0)),
        ("1e17", json!(100_000_000_000_000_000_i64)),
        ("1.2.3", json!("1.2.3")),
        ("12:30:45", json!("12:30:45")),
        ("2021-01-01", json!("2021-01-01")),
        ("2021-01-01T00:00:00Z", json!("2021-01-01T00:00:00Z")),
        ("=", json!("=")),
        ("<<", json!("<<")),
        ("+", json!("+")),
        ("-a", json!("-a")),
        ("1Mi", json!("1Mi")),
        ("!!str 1", json!("1")),
        ("!!int \"7\"", json!(7)),
        ("!!float 1", json!(1)),
        ("!!binary aGk=", json!("hi")),
        ("!custom 1", json!("1")),
    ] {
        assert_eq!(one(&format!("v: {text}\n")), json!({"v": value}), "{text}");
    }
}

#[test]
fn keys_become_text() {
    assert_eq!(
        one("yes: 1\n1: 2\n0x10: 3\n1.5: 4\n\"a\": 5\n1e10: 6\n"),
        json!({"true": 1, "1": 2, "16": 3, "1.5": 4, "a": 5, "1e+10": 6})
    );
    insta::assert_snapshot!(refusal("a:\n  ~: 1\n"), @"line 2, column 3: a key must not be null");
    insta::assert_snapshot!(refusal("? [a]\n: 1\n"), @"line 1, column 3: a key must be a scalar");
}

#[test]
fn streams_hold_any_number_of_documents() {
    assert_eq!(read("---\na: 1\n---\n---\n# nothing\n---\nb: 2\n...\n"), [json!({"a": 1}), json!({"b": 2})]);
    assert_eq!(read(""), [json!(null); 0]);
    assert_eq!(read("\u{feff}a: 1\r\nb: |\r\n  x\r\n  y\r\n"), [json!({"a": 1, "b": "x\ny\n"})]);
}

#[test]
fn json_is_parsed_as_json() {
    assert_eq!(one(r#"{"a": "\ud83d\ude00\/", "b": [1, 2.50, -3e2], "a": 2}"#), json!({"a": 2, "b": [1, 2.5, -300]}));
    assert_eq!(read("{\"a\": 1}\n{\"b\": 2}"), [json!({"a": 1}), json!({"b": 2})]);
    assert_eq!(one("{\"a\": 1e400}"), json!({"a": "1e400"}), "as the YAML that it is, too");
    assert_eq!(one("{a: yes, b: [x]}"), json!({"a": true, "b": ["x"]}), "flow style is not JSON");
    let documents = parse(b"{\n  \"a\": {\"b\": 1}}", &Limits::default()).unwrap();
    let node = documents[0].root.at("/a/b").unwrap();
    assert_eq!((node.line, node.column), (2, 14));
    let documents = parse("[\"\u{e4}\", {\"a\": 1, \"a\": 2}]".as_bytes(), &Limits::default()).unwrap();
    assert_eq!(documents[0].root.to_json(), json!(["\u{e4}", {"a": 2}]));
    assert_eq!(
        documents[0].warnings.iter().map(|warning| (warning.line, warning.column)).collect::<Vec<_>>(),
        [(1, 16)]
    );
}

#[test]
fn tabs_in_block_scalars_are_kept() {
    assert_eq!(one("a: |\n  x\n  \ty\n"), json!({"a": "x\n\ty\n"}));
}

#[test]
fn aliases_are_expanded_and_merge_keys_merged() {
    let text = "base: &base {a: 1, b: 2}\nnext: &next {b: 3, c: 4}\none:\n  <<: *base\n  b: 9\ntwo:\n  d: 0\n  <<: [*next, *base]\n";
    let value = one(text);
    assert_eq!(value["one"], json!({"a": 1, "b": 9}));
    assert_eq!(value["two"], json!({"a": 1, "b": 3, "c": 4, "d": 0}));
    assert_eq!(one("b: &b {a: 1}\nm:\n  !!merge <<: *b\n")["m"], json!({"a": 1}));
    insta::assert_snapshot!(refusal("a: &a [*a]\n"), @"line 1, column 8: the alias is inside its own anchor");
    insta::assert_snapshot!(refusal("<<: 1\n"), @"line 1, column 5: << needs a mapping or a sequence of mappings");
}

#[test]
fn a_merge_key_after_other_keys_loses_with_a_warning() {
    let documents =
        parse(b"base: &base {a: 1, b: 2}\none:\n  a: 3\n  b: 2\n  <<: *base\n", &Limits::default()).unwrap();
    assert_eq!(documents[0].root.to_json()["one"], json!({"a": 3, "b": 2}));
    let warnings: Vec<_> = documents[0].warnings.iter().map(|warning| (warning.line, &*warning.message)).collect();
    let message = "<< merges key \"a\" too; the one in line 3 wins, but Go tools use the merged one";
    assert_eq!(warnings, [(5, message)]);
    assert_eq!(one("\"<<\": {a: 1}\n"), json!({"<<": {"a": 1}}), "text in quotes is not a merge key");
}

#[test]
fn forbidden_characters_are_refused_anywhere() {
    for (text, message) in [
        ("a: 1\nb: x\0y\nc: 3\n", "line 2, column 5: control characters are not allowed, and this is U+0000"),
        ("a: \u{e4}\u{9b}\n", "line 1, column 5: control characters are not allowed, and this is U+009B"),
        ("a: 1\n---\n\u{feff}b: 1\n", "line 3, column 1: control characters are not allowed, and this is U+FEFF"),
        ("{\"a\": 1}\0", "line 1, column 9: control characters are not allowed, and this is U+0000"),
    ] {
        assert_eq!(refusal(text), message);
    }
    assert_eq!(one("a: \u{e4}\u{2603}\u{1f600}\u{fffd}\n"), json!({"a": "\u{e4}\u{2603}\u{1f600}\u{fffd}"}));
    insta::assert_snapshot!(parse(b"\xff\xfea\0", &Limits::default()).unwrap_err(), @"line 1, column 1: not UTF-8 but UTF-16");
}

#[test]
fn aliases_can_neither_lengthen_nor_deepen_a_document_beyond_its_limits() {
    let limits = Limits { bytes: 1 << 20, ..Limits::default() };
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(10_000), "*a,".repeat(200));
    assert_eq!(
        parse(long.as_bytes(), &limits).unwrap_err().to_string(),
        "line 2, column 314: aliases repeat more than 1048576 bytes of text"
    );
    let mut deep = "a0: &a0 [x]\n".to_owned();
    for level in 1..200 {
        writeln!(deep, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    assert_eq!(refusal(&deep), "line 100, column 12: values are nested more than 100 levels deep");
    let level = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(level(100).as_bytes(), &Limits::default()).is_ok());
    assert_eq!(refusal(&level(101)), "line 1, column 101: values are nested more than 100 levels deep");
}

#[test]
fn a_document_that_expands_without_end_is_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let alias = format!("*a{},", level - 1).repeat(10);
        writeln!(text, "a{level}: &a{level} [{alias}]").unwrap();
    }
    assert!(refusal(&text).ends_with("more than 4000000 values, with aliases expanded"), "{}", refusal(&text));
    for deep in ["[".repeat(10_000), format!("{{\"a\":{}", "[".repeat(10_000)), "- ".repeat(10_000)] {
        let refusal = refusal(&deep);
        assert!(refusal.contains("levels deep") || refusal.contains("recursion"), "{refusal}");
    }
}

#[test]
fn the_last_duplicate_key_wins_with_a_warning_if_values_differ() {
    let documents = parse(b"a: 1\nb: 1\na: 2\nb: 1\n", &Limits::default()).unwrap();
    assert_eq!(documents[0].root.to_json(), json!({"a": 2, "b": 1}));
    let warnings: Vec<_> = documents[0].warnings.iter().map(|warning| (warning.line, &*warning.message)).collect();
    assert_eq!(warnings, [(3, "key \"a\" is a duplicate with another value; the one in line 1 is ignored")]);
    let many = (0..40).fold(String::new(), |text, number| format!("{text}k{number}: {number}\n"));
    assert_eq!(one(&format!("{many}k3: x\n"))["k3"], json!("x"));
}

#[test]
fn parse_errors_have_positions() {
    insta::assert_snapshot!(refusal("a: 1\nb: .inf\n"), @"line 2, column 4: .inf is not a number that JSON can represent");
    assert!(refusal("a: 1\nb: [\n").starts_with("line "), "{}", refusal("a: 1\nb: [\n"));
    let error = parse(b"a: 1\nb: \xff\n", &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 4: not UTF-8");
}

#[test]
fn positions_are_those_of_the_text() {
    let documents = parse("a:\n  - b: \u{e4}\n    c: d\n".as_bytes(), &Limits::default()).unwrap();
    let root = &documents[0].root;
    let node = root.at("/a/0/c").unwrap();
    assert_eq!((node.line, node.column), (3, 8));
    let nearest = root.nearest("/a/0/missing/deeper");
    assert_eq!((nearest.line, nearest.column), (2, 5));
    assert!(root.at("/a/1").is_none());
    assert_eq!(root.at("").map(Node::type_name), Some("object"));
}

#[test]
fn lists_are_flattened() {
    let text = "kind: List\nitems:\n- {kind: A}\n- {kind: ConfigMapList, apiVersion: v1, items: [{metadata: {name: x}}, null, {kind: B}]}\n---\nkind: AllowList\n";
    let documents = parse(text.as_bytes(), &Limits::default()).unwrap();
    let flat: Vec<Value> = flatten_lists(documents).iter().map(Node::to_json).collect();
    assert_eq!(
        flat,
        [
            json!({"kind": "A"}),
            json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "x"}}),
            json!({"kind": "B"}),
            json!({"kind": "AllowList"}),
        ]
    );
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_filter("an integer comes back as one", |value| value.fract() != 0.0).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..6).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes, &Limits::default());
    }

    #[test]
    fn arbitrary_yaml_characters_are_parsed_or_refused(text in "[-a:{}\\[\\],&*!|>'\"%#? \n\t0-9.<~]{0,80}") {
        let _ = parse(text.as_bytes(), &Limits::default());
    }

    /// Text that ends in a colon is read as the same text in quotes, with and without a tag and an anchor.
    #[test]
    fn text_that_ends_in_a_colon_needs_no_quotes_between_brackets(
        items in prop::collection::vec(("(|!!str |&a |&a !!str |!!str  &a )", "[a-zé0-9][a-zé0-9:]{0,5}:"), 1..6)
    ) {
        let list = |quote: &str| {
            let items = items.iter().map(|(properties, text)| format!("{properties}{quote}{text}{quote}"));
            format!("v: [{}]\nw: 1\n", items.collect::<Vec<_>>().join(", "))
        };
        prop_assert_eq!(one(&list("")), one(&list("'")));
    }

    #[test]
    fn written_json_can_be_parsed(value in value()) {
        prop_assume!(value.is_object() || value.is_array());
        let text = value.to_string();
        let documents = parse(text.as_bytes(), &Limits::default()).unwrap();
        prop_assert_eq!(&documents[0].root.to_json(), &value);
        let mut json = Vec::new();
        documents[0].root.write_json(&mut json);
        prop_assert_eq!(String::from_utf8(json).unwrap(), text);
    }
}

/// go-yaml ignores indentation inside quotes and brackets, and accepts any blank or none between tokens.
#[test]
fn white_space_that_only_go_accepts() {
    for (text, value) in [
        ("a:\n  b: 'x\n'\n", json!({"a": {"b": "x "}})),
        ("a:\n  b: \"x\ny\n\n  \\\n z\"\n  c: 1\n", json!({"a": {"b": "x y\nz", "c": 1}})),
        ("a:\n- b: 'it''s\r\n\tx'\n  c: 'é\n\ny' # z\n", json!({"a": [{"b": "it's x", "c": "é\ny"}]})),
        ("a:\n  b: {\nc: d,\n  e: [\n1, 'x\ny'\n]\n}\n", json!({"a": {"b": {"c": "d", "e": [1, "x y"]}}})),
        ("a:\n  - - b: [\n]\n", json!({"a": [[{"b": []}]]})),
        ("a:\tb\nc: \t d\n", json!({"a": "b", "c": "d"})),
        ("a: 'b'#c\nd: [e]#f\n", json!({"a": "b", "d": ["e"]})),
    ] {
        assert_eq!(one(text), value, "{text:?}");
    }
    // Positions refer to the original text.
    let documents = parse(b"a:\n  b: 'x\ny'\n  c: {d: 'x\n', e: 1,\nf: 2}\n", &Limits::default()).unwrap();
    let at = |pointer: &str| documents[0].root.at(pointer).map(|node| (node.line, node.column)).unwrap();
    assert_eq!([at("/a/b"), at("/a/c/d"), at("/a/c/e"), at("/a/c/f")], [(2, 6), (4, 10), (5, 7), (6, 4)]);
    for text in
        ["a: 'x\n", "a:\n  b: {\nc: d\n", "a:\tb: c\n", "a:\tb: c: d\n", "a: {\n---\n}\n", "a:\n  b: \"x\n\\q\"\n"]
    {
        assert!(parse(text.as_bytes(), &Limits::default()).is_err(), "{text:?}");
    }
    // Every repair means parsing again, and that is limited like text.
    let text = format!("a:\n  b:\n{}", "  - 'x\ny'\n".repeat(200));
    assert_eq!(one(&text)["a"]["b"].as_array().map(Vec::len), Some(200));
    let limits = Limits { bytes: text.len(), ..Limits::default() };
    let refusal = parse(text.as_bytes(), &limits).unwrap_err();
    assert_eq!(refusal.message, "invalid indentation in quoted scalar");
    assert!(refusal.line > 20, "{refusal}");
}

/// Each with the value that `sigs.k8s.io/yaml` gives.
#[test]
fn colons_and_dashes_before_brackets_and_commas_belong_to_the_text() {
    let cases = [
        ("[fd00::, b]", json!(["fd00::", "b"])),
        ("[1.2.3.4, 2001:db8::]", json!(["1.2.3.4", "2001:db8::"])),
        ("{a: fd00::}", json!({"a": "fd00::"})),
        ("{a: b:, c: d:}", json!({"a": "b:", "c": "d:"})),
        ("{a:}", json!({"a:": null})),
        ("{a:,b: 1}", json!({"a:": null, "b": 1})),
        ("[a:,b]", json!(["a:", "b"])),
        ("[[a::], {b: [c:]}]", json!([["a::"], {"b": ["c:"]}])),
        ("[x's':]", json!(["x's':"])),
        ("[é:, ü::]", json!(["é:", "ü::"])),
        ("[-]", json!(["-"])),
        ("[cat, -]", json!(["cat", "-"])),
        ("[--, -, a]", json!(["--", "-", "a"])),
        ("{a: -}", json!({"a": "-"})),
        ("{-: 1}", json!({"-": 1})),
        // Here the colon ends a key.
        ("[a: ]", json!([{"a": null}])),
        ("{a: }", json!({"a": null})),
        (r#"{"a":}"#, json!({"a": null})),
        ("{fd00::1: 2}", json!({"fd00::1": 2})),
        ("'[a:]'", json!("[a:]")),
        ("a:]", json!("a:]")),
        // With a tag or an anchor.
        ("[!!str fd00::]", json!(["fd00::"])),
        ("[&a fd00::, *a]", json!(["fd00::", "fd00::"])),
        ("[&a !!str a:, !!str &c b:]", json!(["a:", "b:"])),
        ("{a: !!str fd00::, !!str b:, &c d:}", json!({"a": "fd00::", "b:": null, "d:": null})),
        ("[!<tag:yaml.org,2002:str> a:]", json!(["a:"])),
        ("{a: !!str\n  # c: ]\n  é d::, e: f:}", json!({"a": "é d::", "e": "f:"})),
        ("{a: &a\r\n  b:, c: [d:]}", json!({"a": "b:", "c": ["d:"]})),
        ("[!!str 'a':]", json!([{"a": null}])),
        ("[!!str a: ]", json!([{"a": null}])),
    ];
    for (text, value) in cases {
        assert_eq!(one(&format!("z: &b 1\nv: {text}\n"))["v"], value, "{text}");
    }
    // go-yaml refuses these.
    for text in ["[-[a]]", "[- ]", "[a b: -, c"] {
        refusal(&format!("v: {text}\n"));
    }
}

#[test]
fn quotes_that_are_added_move_no_position() {
    let columns = |root: &Node| -> Vec<u32> {
        root.get("v").and_then(Node::as_sequence).unwrap().iter().map(|item| item.column).collect()
    };
    let documents = parse(b"v: [!!str a:, &a b:, c]\n", &Limits::default()).unwrap();
    assert_eq!(columns(&documents[0].root), [5, 15, 22]);
    let documents = parse("v: [a:, x'y:, -, {b: c:}, d]\nw: e\n".as_bytes(), &Limits::default()).unwrap();
    let root = &documents[0].root;
    assert_eq!(columns(root), [5, 9, 15, 18, 27]);
    assert_eq!(root.at("/v/3/b").unwrap().column, 22);
    assert_eq!((root.get("w").unwrap().line, root.get("w").unwrap().column), (2, 4));
}

/// go-yaml accepts it at the indentation of its key, too.
#[test]
fn the_head_of_a_block_scalar_may_be_alone_in_its_line() {
    for (text, value) in [
        ("k:\n|\n  text\nl: 1\n", json!({"k": "text\n", "l": 1})),
        ("k:\n |\n  text\nl: 1\n", json!({"k": "text\n", "l": 1})),
        ("k:\n  |\n  text\nl: 1\n", json!({"k": "text\n", "l": 1})),
        ("a:\n  k:\n  >-\n    x\n    y\n  l: 1\n", json!({"a": {"k": "x y", "l": 1}})),
        ("a:\n-\n|\n  x\n-\n|\n  y\n", json!({"a": ["x\n", "y\n"]})),
        ("- a\n-\n|\n  x\n- b\n", json!(["a", "x\n", "b"])),
        ("-\n|\n  x\n", json!(["x\n"])),
        ("- k:\n  |\n    x\n  l:\n  |\n    y\n", json!([{"k": "x\n", "l": "y\n"}])),
        ("k:\n# c: d\n\n|-\n  x\n", json!({"k": "x"})),
        ("k: !!str\n|\n  7\n", json!({"k": "7\n"})),
        ("k: &a # c\n|+ # d\n  x\n\nl: *a\n", json!({"k": "x\n\n", "l": "x\n\n"})),
        ("'k' :\r\n|\r\n  x\r\n", json!({"k": "x\n"})),
        ("k:\n|2\n   x\n", json!({"k": " x\n"})),
        ("k:\n|\nl: 1\n", json!({"k": "", "l": 1})),
        ("a: 1\nk:\n|", json!({"a": 1, "k": ""})),
    ] {
        assert_eq!(one(text), value, "{text:?}");
    }
    let documents = parse(b"k:\n|\n  x\nl:\n|\n   y\n", &Limits::default()).unwrap();
    let at = |pointer: &str| documents[0].root.at(pointer).map(|node| (node.line, node.column)).unwrap();
    assert_eq!([at("/k"), at("/l")], [(3, 3), (6, 4)]);
    // go-yaml refuses these.
    for text in [
        "k:\nfoo\n",
        "k: 1\n|\n  x\n",
        "k: a-\n|\n  x\n",
        "k: 'x'\n|\n  y\n",
        "a:\n  k: 1\n|\n  x\n",
        "- 1\n|\n  x\n",
        "a:\n b:\n  c:\n|\n   x\n",
        "- k:\n|\n  x\n",
        "a:\n -\n|\n  x\n",
    ] {
        refusal(text);
    }
}

/// Adding the quotes is another reading of the text, and readings are limited.
#[test]
fn many_colons_before_brackets_are_cheap_or_refused() {
    let many = format!("v: [{}]\n", "a:, ".repeat(50_000));
    assert_eq!(one(&many)["v"].as_array().unwrap().len(), 50_000);
    let many = format!("v: [{}]\n", "!!str a:, ".repeat(50_000));
    assert_eq!(one(&many)["v"].as_array().unwrap().len(), 50_000);
    let lines = "- {a: b:}\n".repeat(2_000);
    let limits = Limits { bytes: lines.len(), ..Limits::default() };
    let error = parse(lines.as_bytes(), &limits).unwrap_err();
    assert!(error.message.contains("into quotes"), "{error}");
}

#[test]
fn errors_at_the_end_have_positions_inside_the_text() {
    for (text, at) in [("[", (1, 2)), ("a: 1\nb: [\n", (3, 1)), ("a: {b", (1, 6)), ("p:\ns", (2, 2)), ("{#", (1, 3))] {
        let error = parse(text.as_bytes(), &Limits::default()).unwrap_err();
        assert_eq!((error.line, error.column), at, "{text:?}: {error}");
    }
    // A missing value, too.
    let documents = parse(b"? a", &Limits::default()).unwrap();
    let value = documents[0].root.get("a").unwrap();
    assert_eq!((value.line, value.column), (1, 4));
}

#[test]
fn large_duplicated_or_merged_mappings_are_cheap() {
    let mapping =
        |keys: &mut dyn Iterator<Item = u32>| keys.map(|key| format!("k{key}: 1")).collect::<Vec<_>>().join(", ");
    let (up, down) = (mapping(&mut (0..100_000)), mapping(&mut (0..100_000).rev()));
    let documents = parse(format!("a: &a {{{up}}}\na: {{{down}}}\n").as_bytes(), &Limits::default()).unwrap();
    assert!(documents[0].warnings.is_empty(), "equal but for the order: {:?}", documents[0].warnings);
    let documents =
        parse(format!("a: &a {{{up}}}\nb: {{{down}, <<: *a, k7: 2}}\n").as_bytes(), &Limits::default()).unwrap();
    assert_eq!(documents[0].root.at("/b").unwrap().as_mapping().unwrap().len(), 100_000);
    assert_eq!(documents[0].root.at("/b/k7").unwrap().as_i64(), Some(2));
    assert_eq!(documents[0].warnings.len(), 1);
}
