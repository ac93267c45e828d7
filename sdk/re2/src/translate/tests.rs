use proptest::prelude::*;

use crate::{compile, translate};

const BYTES: usize = 1 << 20;

/// Patterns with texts that match and texts that do not, according to Go 1.26.
const READ: &[(&str, &[&str], &[&str])] = &[
    // Patterns of published operators.
    (r"^(/[^/\0]+)+/?$", &["/usr/bin", "/a/"], &["usr", "/\0", "//"]),
    (r"^(?:[\w\-.~:\/?#[\]@!$&'()*+,;=]+)\.(?:[\w\-.~:\/?#[\]@!$&'()*+,;=]+)$", &["a.b", "[x].y&"], &["ab", "a b.c"]),
    // Brackets and hyphens within brackets.
    ("^[]a]+$", &["]a"], &["b"]),
    ("^[^]a]$", &["b"], &["]", "a"]),
    ("^[[a]+$", &["[a"], &["b", "]"]),
    ("^[a[:digit:]_]+$", &["a1_"], &["d", ":"]),
    ("^[[:^alpha:]]$", &["1"], &["a"]),
    ("^[[:a]$", &["[", ":", "a"], &["b"]),
    ("^[a&&b]+$", &["a&b"], &["c"]),
    ("^[a~~b]+$", &["a~b"], &["c"]),
    ("^[+--]+$", &["+,-"], &["."]),
    ("^[--/]+$", &["-./"], &["0", ","]),
    ("^[a-c-e]+$", &["b-e"], &["d"]),
    ("^[a-]+$", &["a-"], &["b"]),
    (r"^[\w-]+$", &["a-1_"], &["ä", "."]),
    (r"^[\d.]+$", &["1.2"], &["١"]),
    (r"^[^\s]+$", &["ab", "\u{a0}", "\u{b}"], &["a b"]),
    (r"^[\]\\\-]+$", &[r"]\-"], &["["]),
    // Classes are ASCII, including `\w`.
    (r"^\d+$", &["12"], &["١٢"]),
    (r"^\w+$", &["a_1"], &["ä"]),
    (r"^\s$", &[" ", "\t"], &["\u{a0}", "\u{b}"]),
    (r"a\b", &["a", "aä"], &["ab"]),
    (r"^\p{Greek}\pL\P{Greek}\p{^Greek}$", &["αaab"], &["aaaa", "αaαb"]),
    // Characters by code point.
    (r"^\101\x42\x{43}\060$", &["ABC0"], &["ABC"]),
    (r"^\07$", &["\u{7}"], &["07"]),
    (r"^\a\f\t\n\r\v$", &["\u{7}\u{c}\t\n\r\u{b}"], &[""]),
    // Quoted text.
    (r"^\Qa.b[\E+$", &["a.b[", "a.b[["], &["axb["]),
    (r"^\Qa.", &["a.b"], &["ab"]),
    (r"^\<a\>\_\/$", &["<a>_/"], &["a"]),
    // Literal braces.
    ("^{a}$", &["{a}"], &["a"]),
    ("^a{,2}$", &["a{,2}"], &["aa"]),
    ("^a{01}$", &["a{01}"], &["a"]),
    ("^a{2}b{1,}c{0,1}?$", &["aabb", "aabc"], &["ab"]),
    (r"^\{\{.*\}\}$", &["{{x}}"], &["{x}"]),
    // Groups and flags.
    ("(?i)^(?P<name>a)(?:b)(?<other>c)$", &["ABC"], &["AB"]),
    ("^(?s:.)(?m:$)", &["\n"], &[""]),
    ("(?U)^a+(?-U)$", &["aa"], &["b"]),
    ("^a|b$", &["ax", "xb"], &["xax"]),
];

/// Patterns that Go refuses.
const REFUSED: &[&str] = &[
    "[",
    "[a",
    "[]",
    "[b-a]",
    r"[a-\d]",
    r"[\b]",
    r"[\A]",
    "(",
    ")",
    "(?",
    "(?=a)",
    "(?!a)",
    "(?<=a)",
    "(?x)a",
    "(?u)a",
    r"\1",
    r"\8",
    r"\Z",
    r"\e",
    r"\x",
    r"\x{110000}",
    r"\x{}",
    r"\u0041",
    "\\",
    "a**",
    "a+*",
    "a{2}{3}",
    "a*??",
    "*a",
    "a{1001}",
    "a{2,1}",
    r"\p{Nothing}",
    r"\pX",
    "[[:nothing:]]",
    "(?P=n)",
];

#[test]
fn patterns_match_as_in_go() {
    for (pattern, matched, unmatched) in READ {
        let compiled = compile(pattern, BYTES).unwrap_or_else(|error| panic!("{pattern}: {error}"));
        for text in *matched {
            assert!(compiled.is_match(text), "{pattern} matches {text:?}");
        }
        for text in *unmatched {
            assert!(!compiled.is_match(text), "{pattern} does not match {text:?}");
        }
    }
}

#[test]
fn patterns_with_the_same_meaning_do_not_change() {
    for pattern in ["^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", r"^(\d+\.)?a{2,}$", "^(?i)a|b.*$", "^<a>/'\"@%$"] {
        let read = translate(pattern).unwrap();
        assert_eq!(read.replace("[0-9]+", r"\d+").replace(r"[\-a", "[-a"), pattern);
    }
}

#[test]
fn patterns_that_go_refuses_are_refused() {
    for pattern in REFUSED {
        assert!(compile(pattern, BYTES).is_err(), "{pattern}");
    }
    assert!(compile("a{1000}{2}", BYTES).is_err());
    assert!(compile("((a{100}){100}){100}", BYTES).unwrap_err().to_string().contains("size limit"));
}

#[test]
fn parsing_takes_linear_time() {
    // Each would take hours if the rest were parsed again at each bracket.
    for piece in ["{", "[:", "[[:a]", "{1", "(?i)"] {
        let pattern = piece.repeat((1 << 20) / piece.len());
        if let Ok(translated) = translate(&pattern) {
            assert!(translated.len() >= pattern.len());
        }
    }
}

proptest! {
    #[test]
    fn nothing_panics(pattern in r"[\[\]\\(){}?*+^$a-c0-9,:&~dwpPxQE-]{0,24}", text in "[a-c0-9\\[-]{0,8}") {
        if let Ok(compiled) = compile(&pattern, BYTES) {
            compiled.is_match(&text);
        }
    }
}
