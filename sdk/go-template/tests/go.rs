//! What Go 1.26 gives for the same templates.
//!
//! `go.jsonl` was written by a program around text/template with the data and functions below, one line for each template: what it gives, or the
//! text of its error.

use chandler_go_template::{Limits, Value};
use proptest::prelude::*;
use serde_json::json;

use crate::support::{render, value};

fn data() -> Value {
    value(&json!({
        "n": 1_000_000, "f": 1.5, "s": "yes", "h": "<a&'\"b>", "m": {"b": 1, "a": "x"}, "l": [3, 1, "z", null], "nul": null, "e": {}, "el": [],
        "t": true, "deep": {"x": {"y": {"z": "w"}}}, "u": "h\u{e9}llo\u{1}\u{1f600}",
    }))
}

/// Where the answer differs, and is meant to: floats in hexadecimal are not printed.
const DIFFERENT: &[&str] = &["{{ printf \"%x\" 1.5 }}"];

#[test]
fn templates_give_what_go_gives() {
    let mut different = Vec::new();
    for line in include_str!("go.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let template = row["template"].as_str().unwrap();
        let wanted =
            row["want"].as_str().map(str::to_owned).ok_or_else(|| row["error"].as_str().unwrap_or_default().to_owned());
        let given = render(Limits::default(), template, &data());
        if given != wanted && !DIFFERENT.contains(&template) {
            different.push(format!("{template}\n  Go   {wanted:?}\n  here {given:?}"));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(\\{\\{-? ?|-?\\}\\}|[.$|()\"'`:=,/*\\\\]|[a-z]{1,3}|if |range |end|else |define |with |[0-9.]{1,4}|\n| |é){0,40}") {
        let _ = render(Limits { steps: 10_000, bytes: 1 << 20, depth: 100 }, &text, &data());
    }

    #[test]
    fn no_format_makes_printf_panic(format in "(%|[-+# 0*.]|\\[[0-9]\\]|[0-9]{1,3}|[a-zA-Z]|é){0,12}", number in any::<i64>(), float in any::<f64>()) {
        let dot = Value::list(vec![format.into(), Value::int(number), float.into(), "text".into(), data()]);
        let text = "{{ range $i, $e := . }}{{ if $i }}{{ printf (index $ 0) $e $e }}{{ end }}{{ end }}";
        let _ = render(Limits { steps: 100_000, bytes: 1 << 20, depth: 100 }, text, &dot);
    }
}
