//! Kubernetes objects and other data on standard output.

use std::io::{self, Write as _};

use chandler_core::text::{is_deceptive, printable_json, printable_json_for_yaml};
use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value, json};

use super::{error::CommandError, spinner, terminal};

/// The format of Kubernetes objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// YAML, one document per object
    Yaml,
    /// JSON, one `List` with all objects
    Json,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DataFormat {
    /// Human-readable text
    Text,
    /// JSON, with every field
    Json,
    /// YAML, as JSON
    Yaml,
}

/// The objects in this format, with a final line feed. `kubectl apply -f -` accepts both formats.
pub fn write(objects: &[Value], format: Format) -> Result<String, CommandError> {
    match format {
        Format::Yaml => yaml(objects),
        Format::Json => json(&json!({"apiVersion": "v1", "kind": "List", "items": objects})),
    }
}

/// YAML documents, each after a `---` line. A document with [deceptive characters](is_deceptive) is written as JSON, with those
/// escaped, and so is a document that is a single string: parsers differ on a literal of blank lines before `---`. Strings that a YAML 1.1 or 1.2 parser would take for another type are quoted, and text of several lines is literal.
pub fn yaml(documents: &[Value]) -> Result<String, CommandError> {
    let options = serde_saphyr::ser_options! {
        // A folded scalar parses to the same value, but shows line breaks that the value does not have.
        folded_wrap_chars: usize::MAX,
    };
    let mut text = String::new();
    for document in documents {
        text.push_str("---\n");
        let yaml = serde_saphyr::to_string_with_options(document, options.clone())
            .map_err(|error| CommandError::failed("failed to write YAML").because(&error))?;
        if document.is_string() || yaml.contains(is_deceptive) {
            // JSON is valid YAML and quotes every string, so that deceptive characters can be escaped.
            text.push_str(&printable_json_for_yaml(&unescaped_json(document)?));
        } else {
            text.push_str(&yaml);
        }
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    Ok(text)
}

/// Data in this format; `text` makes the text for people.
pub fn data(value: &impl Serialize, format: DataFormat, text: impl FnOnce() -> String) -> Result<String, CommandError> {
    match format {
        DataFormat::Text => Ok(terminal::drawn(&text()).into_owned()),
        DataFormat::Json => json(value),
        DataFormat::Yaml => {
            let value = serde_json::to_value(value);
            yaml(&[value.map_err(|error| CommandError::failed("failed to write YAML").because(&error))?])
        }
    }
}

/// Indented JSON. Control characters and invisible characters are escaped.
pub fn json(value: &impl Serialize) -> Result<String, CommandError> {
    Ok(printable_json(&unescaped_json(value)?).into_owned() + "\n")
}

fn unescaped_json(value: &impl Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(value).map_err(|error| CommandError::failed("failed to write JSON").because(&error))
}

/// Writes text for people to standard output.
pub fn show(text: &str) -> Result<(), CommandError> {
    print(&terminal::drawn(text))
}

/// Writes data to standard output.
pub fn print(text: &str) -> Result<(), CommandError> {
    let write = || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    };
    spinner::hidden(write).map_err(|error| CommandError::output(&error))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn both_formats_end_with_a_line_feed_and_preserve_the_order() {
        let objects = [json!({"kind": "B"}), json!({"kind": "A"})];
        assert_eq!(write(&objects, Format::Yaml).unwrap(), "---\nkind: B\n---\nkind: A\n");
        insta::assert_snapshot!(write(&objects, Format::Json).unwrap(), @r#"
        {
          "apiVersion": "v1",
          "items": [
            {
              "kind": "B"
            },
            {
              "kind": "A"
            }
          ],
          "kind": "List"
        }
        "#);
        assert_eq!(yaml(&[]).unwrap(), "");
    }

    #[test]
    fn multiline_text_is_literal_and_ambiguous_strings_are_quoted() {
        let value = json!({
            "script": "#!/bin/sh\nset -e\n\techo done\n",
            "long": "word ".repeat(40),
            "y": ["no", "0644", "1_000", "1:30", "2021-01-01", "~", "<<", "=", "", "1e3", ".inf", "0x1F"],
            "plain": ["a b", "it's", "http://x:80/y?z#f", "5m"],
        });
        insta::assert_snapshot!(yaml(&[value]).unwrap(), @r#"
        ---
        long: "word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word word "
        plain:
        - a b
        - it's
        - http://x:80/y?z#f
        - 5m
        script: |
          #!/bin/sh
          set -e
          	echo done
        "y":
        - "no"
        - "0644"
        - "1_000"
        - "1:30"
        - "2021-01-01"
        - "~"
        - "<<"
        - "="
        - ""
        - "1e3"
        - ".inf"
        - "0x1F"
        "#);
    }

    #[test]
    fn deceptive_characters_are_escaped_and_parse_back() {
        let object = json!({"kind": "Role", "metadata": {"name": "a\u{202e}b"}, "text": "x\u{e0061}\u{61c}\u{9b}"});
        insta::assert_snapshot!(yaml(&[object.clone(), json!({"a": 1})]).unwrap(), @r#"
        ---
        {
          "kind": "Role",
          "metadata": {
            "name": "a\u202eb"
          },
          "text": "x\U000e0061\u061c\u009b"
        }
        ---
        a: 1
        "#);
        let text = json(&object).unwrap();
        assert!(!text.contains(is_deceptive), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), object);
    }

    #[test]
    fn a_document_that_is_a_string_is_quoted() {
        assert_eq!(yaml(&[json!("\n"), json!("a")]).unwrap(), "---\n\"\\n\"\n---\n\"a\"\n");
    }

    /// Strings that YAML parsers treat specially, and any others.
    fn text() -> impl Strategy<Value = String> {
        let special = prop::sample::select(vec![
            "",
            " ",
            "~",
            "null",
            "true",
            "yes",
            "y",
            "N",
            "on",
            "Off",
            "=",
            "<<",
            "-",
            "---",
            "...",
            "?",
            ":",
            "0",
            "007",
            "0o17",
            "0x1f",
            "0b1",
            "1_0",
            "+1",
            "-.5",
            "1.",
            "1e3",
            "1:30",
            ".inf",
            ".NaN",
            "2021-01-01",
            "#",
            "a #b",
            "a: b",
            "a:",
            "- a",
            "*a",
            "&a",
            "!a",
            "%a",
            "@a",
            "`a",
            "|",
            ">",
            "'",
            "\"",
            "\\",
            "{",
            "[a",
            "a,b",
            "\u{feff}a",
            "\u{85}",
            "\u{2028}",
            "a\u{61c}\u{e0061}",
            "\u{7f}",
            "\t",
            "a\t",
            "\ta\n",
            "a\n",
            "a\n\n",
            "\n",
            "\n\na",
            " a\nb",
            "a \nb",
            "a\r\nb",
            "---\na",
            "# a\nb\n",
        ]);
        prop_oneof![special.prop_map(str::to_owned), any::<String>(), "[ -~\n\t]{0,40}", "([a-z ]{0,60}\n){0,4}"]
    }

    fn value() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1e9..1e9f64).prop_map(Value::from),
            text().prop_map(Value::from),
        ];
        scalar.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(text(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The value as the parser returns it: floats without a fraction are integers, as in Go.
    fn canonical(value: Value) -> Value {
        match value {
            Value::Array(items) => items.into_iter().map(canonical).collect(),
            Value::Object(map) => Value::Object(map.into_iter().map(|(key, value)| (key, canonical(value))).collect()),
            Value::Number(number) if number.is_f64() => {
                chandler_yaml::parse(number.to_string().as_bytes(), &chandler_yaml::Limits::default())
                    .map_or(Value::Null, |documents| chandler_yaml::from_node(&documents[0].root).unwrap())
            }
            other => other,
        }
    }

    proptest! {
        #[test]
        fn written_yaml_parses_back_to_equal_values(objects in prop::collection::vec(value(), 1..4)) {
            let text = yaml(&objects).unwrap();
            let documents = chandler_yaml::parse(text.as_bytes(), &chandler_yaml::Limits::default());
            let documents = documents.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            let read: Vec<Value> =
                documents.iter().map(|document| chandler_yaml::from_node(&document.root).unwrap()).collect();
            // The parser skips null documents.
            let written: Vec<Value> = objects.into_iter().map(canonical).filter(|object| !object.is_null()).collect();
            prop_assert_eq!(read, written, "{}", text);
            prop_assert!(!text.contains(is_deceptive), "{:?}", text);
        }
    }
}
