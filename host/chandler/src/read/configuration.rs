//! The configuration of a bundle (`spec.config`), from a file.

use std::{
    io,
    path::{Path, PathBuf},
};

use chandler_core::{Diagnostic, Location, Severity};
use chandler_values::{
    assignment::{self, Typing},
    resolve::overlay,
};
use chandler_yaml::{Limits, from_node, parse};
use serde_json::{Map, Value};

use super::file;
use crate::{
    CommandError,
    view::diagnostics::{self, Finding, NamedText, Sources},
};

/// The largest configuration, in bytes. By default an API server accepts little more for a whole object.
const LIMIT: u64 = 1 << 20;

/// The files and values that a configuration is merged from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigurationOptions {
    /// Files in YAML or JSON; `-` is standard input. Objects are merged member by member, and the last file wins.
    pub files: Vec<PathBuf>,
    /// Assignments such as `a.b=1`, which win over the files.
    pub assignments: Vec<String>,
    /// Assignments of strings, such as `tag=1.10`.
    pub strings: Vec<String>,
}

impl ConfigurationOptions {
    /// Whether neither files nor values are set.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.assignments.is_empty() && self.strings.is_empty()
    }
}

/// A configuration, and the text that it was parsed from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configuration {
    /// The name of the file, for messages.
    pub name: String,
    /// The text.
    pub text: String,
    /// The parsed value.
    pub value: Map<String, Value>,
    /// Warnings about the text, such as a key that occurs twice.
    pub warnings: Vec<Diagnostic>,
}

impl Configuration {
    /// Reads YAML or JSON from a file, or from standard input if the path is `-`.
    pub fn read(path: &Path) -> Result<Self, CommandError> {
        let (name, bytes) = if path == Path::new("-") {
            ("standard input".to_owned(), file::read_from(io::stdin().lock(), LIMIT))
        } else {
            (path.display().to_string(), file::read(path, LIMIT))
        };
        let bytes = bytes.map_err(|error| {
            CommandError::usage(format!("failed to read the configuration from {name}"))
                .because(&error)
                .hint("--config takes a file in YAML or JSON, or `-` for standard input")
        })?;
        Self::parse(name, &bytes)
    }
}

impl Configuration {
    /// The text and its name, for messages. The text is empty if the configuration is not a single file.
    pub fn named(&self) -> NamedText<'_> {
        NamedText { name: &self.name, text: &self.text }
    }

    /// Parses the text of a file with this name.
    pub fn parse(name: String, bytes: &[u8]) -> Result<Self, CommandError> {
        let mut configuration = Self { name, text: String::from_utf8_lossy(bytes).into_owned(), ..Self::default() };
        match read(bytes) {
            Ok((value, warnings)) => {
                configuration.value = value;
                configuration.warnings = warnings;
                Ok(configuration)
            }
            Err(diagnostic) => {
                let sources = Sources { configuration: Some(configuration.named()), ..Sources::default() };
                Err(CommandError::usage(format!("the configuration in {} is invalid", configuration.name))
                    .hint("the configuration is one YAML or JSON object, as in spec.config")
                    .with_findings([Finding::new(*diagnostic, &sources)]))
            }
        }
    }
}

/// The configuration of the options alone, or `None` if they set nothing. Findings refer to the lines of the file, if it is one.
pub fn given(options: &ConfigurationOptions) -> Result<Option<Configuration>, CommandError> {
    if options.is_empty() {
        return Ok(None);
    }
    let mut configuration = match options.files.as_slice() {
        [file] => Configuration::read(file)?,
        files => {
            let mut value = Map::new();
            for file in files {
                overlay(&mut value, Configuration::read(file)?.value);
            }
            Configuration { name: diagnostics::CONFIG.to_owned(), value, ..Configuration::default() }
        }
    };
    configuration.value = assigned(options, configuration.value)?;
    Ok(Some(configuration))
}

/// The files, merged in their order over `base`, with the single values over them.
pub fn combined(options: &ConfigurationOptions, base: Map<String, Value>) -> Result<Map<String, Value>, CommandError> {
    assigned(options, merged(&options.files, base)?)
}

/// The configuration of the options, which was read before, over `base`. Standard input can be read only once.
pub fn over(
    options: &ConfigurationOptions,
    given: Option<&Configuration>,
    base: Map<String, Value>,
) -> Result<Map<String, Value>, CommandError> {
    let mut config = base;
    if let Some(given) = given {
        assignment::merge(&mut config, given.value.clone());
    }
    // A null removes a member of the base.
    assigned(options, config)
}

fn merged(files: &[PathBuf], base: Map<String, Value>) -> Result<Map<String, Value>, CommandError> {
    let mut config = base;
    for file in files {
        assignment::merge(&mut config, Configuration::read(file)?.value);
    }
    Ok(config)
}

fn assigned(options: &ConfigurationOptions, base: Map<String, Value>) -> Result<Map<String, Value>, CommandError> {
    let mut config = base;
    let typed = options.assignments.iter().map(|text| ("--set", text, Typing::Typed));
    let strings = options.strings.iter().map(|text| ("--set-string", text, Typing::Strings));
    for (option, text, typing) in typed.chain(strings) {
        let invalid = |error| CommandError::usage(format!("{option} is invalid")).because(&error);
        for assignment in assignment::parse(text, typing).map_err(invalid)? {
            assignment.apply(&mut config).map_err(invalid)?;
        }
    }
    Ok(config)
}

/// The parsed value and the warnings.
type Parsed = (Map<String, Value>, Vec<Diagnostic>);

fn read(bytes: &[u8]) -> Result<Parsed, Box<Diagnostic>> {
    let limits = Limits { bytes: bytes.len(), nodes: 100_000, ..Limits::default() };
    let documents =
        parse(bytes, &limits).map_err(|error| refusal("InvalidYaml", error.message, error.line, error.column))?;
    let [document] = documents.as_slice() else {
        return match documents.get(1) {
            None => Ok((Map::new(), Vec::new())),
            Some(second) => {
                let (line, column) = (second.root.line, second.root.column);
                Err(refusal("InvalidYaml", "a second YAML document starts here; only one is allowed", line, column))
            }
        };
    };
    let root = &document.root;
    let value = from_node(root).map_err(|error| refusal("InvalidYaml", error.to_string(), 1, 1))?;
    let Value::Object(value) = value else {
        let message = format!("is of type {}, but a configuration must be an object", root.type_name());
        return Err(refusal("InvalidConfiguration", message, root.line, root.column));
    };
    let warnings = document.warnings.iter().map(|warning| {
        finding(Severity::Warning, "SuspiciousYaml", warning.message.as_str(), warning.line, warning.column)
    });
    Ok((value, warnings.collect()))
}

fn refusal(code: &str, message: impl Into<String>, line: u32, column: u32) -> Box<Diagnostic> {
    Box::new(finding(Severity::Error, code, message, line, column))
}

fn finding(severity: Severity, code: &str, message: impl Into<String>, line: u32, column: u32) -> Diagnostic {
    let (path, line, column) = (diagnostics::CONFIG.to_owned(), Some(line), Some(column));
    let location = Location { path, line, column, ..Location::default() };
    Diagnostic { location: Some(location), ..Diagnostic::new(severity, code, message) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::view::terminal::{Look, Terminal};

    fn value(text: &str) -> Value {
        Value::Object(Configuration::parse("values.yaml".into(), text.as_bytes()).unwrap().value)
    }

    #[test]
    fn yaml_and_json_are_parsed_as_kubectl_parses_them() {
        assert_eq!(value(""), json!({}));
        assert_eq!(value("# nothing\n"), json!({}));
        assert_eq!(value("{\"a\": 1}"), json!({"a": 1}));
        assert_eq!(value("a: yes\nb: 0644\nc: 2021-01-01\n"), json!({"a": true, "b": 420, "c": "2021-01-01"}));
    }

    #[test]
    fn files_are_merged_and_single_values_win() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let options = ConfigurationOptions {
            files: vec![file("a.yaml", "a: {x: 1, m: 1}\nb: 1\n"), file("b.yaml", "a: {m: 2}\nc: null\n")],
            assignments: vec!["a.z=3,b=null".to_owned()],
            strings: vec!["d=1.10".to_owned()],
        };
        let base = json!({"a": {"w": 0}, "c": 1});
        let combined = combined(&options, base.as_object().cloned().unwrap()).unwrap();
        assert_eq!(Value::Object(combined), json!({"a": {"w": 0, "x": 1, "m": 2, "z": 3}, "d": "1.10"}));
    }

    #[test]
    fn the_arguments_alone_are_a_configuration_too() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.yaml");
        std::fs::write(&path, "a: {x: 1}\nb: null\n").unwrap();
        assert_eq!(given(&ConfigurationOptions::default()).unwrap(), None);
        let set = |files: &[&Path]| ConfigurationOptions {
            files: files.iter().map(|path| path.to_path_buf()).collect(),
            assignments: vec!["a.y=2".to_owned()],
            strings: Vec::new(),
        };
        let one = given(&set(&[&path])).unwrap().unwrap();
        assert_eq!(Value::Object(one.value.clone()), json!({"a": {"x": 1, "y": 2}, "b": null}));
        assert!(one.text.starts_with("a: {x: 1}"), "findings show its lines");
        let none = given(&set(&[])).unwrap().unwrap();
        assert_eq!((Value::Object(none.value), none.text.as_str()), (json!({"a": {"y": 2}}), ""));
        let base = json!({"a": {"x": 0, "z": 0}, "b": 1}).as_object().cloned().unwrap();
        let over = over(&set(&[&path]), Some(&one), base).unwrap();
        assert_eq!(Value::Object(over), json!({"a": {"x": 1, "y": 2, "z": 0}}));
    }

    #[test]
    fn suspicious_text_is_a_warning_and_invalid_text_is_shown_with_its_line() {
        let configuration = Configuration::parse("values.yaml".into(), b"a: 1\na: 2\n").unwrap();
        assert_eq!(configuration.warnings.len(), 1);
        let terminal = Terminal::new(Look::Plain, 100);
        let refused = |text: &str| {
            let error = Configuration::parse("values.yaml".into(), text.as_bytes()).unwrap_err();
            format!("{}{error}", diagnostics::render(error.findings(), &terminal))
        };
        insta::assert_snapshot!(refused("a: 1\nb: [1, 2\n"), @r"
        error[InvalidYaml]

          x while parsing a flow sequence, expected ',' or ']'
           ,-[values.yaml:3:1]
         2 | b: [1, 2
           `----

        error: the configuration in values.yaml is invalid
          hint: the configuration is one YAML or JSON object, as in spec.config
        ");
        insta::assert_snapshot!(refused("- a\n"), @r"
        error[InvalidConfiguration]

          x is of type array, but a configuration must be an object
           ,-[values.yaml:1:1]
         1 | - a
           : |
           : `-- here
           `----

        error: the configuration in values.yaml is invalid
          hint: the configuration is one YAML or JSON object, as in spec.config
        ");
        insta::assert_snapshot!(refused("a: 1\n---\nb: 2\n"), @r"
        error[InvalidYaml]

          x a second YAML document starts here; only one is allowed
           ,-[values.yaml:3:1]
         2 | ---
         3 | b: 2
           : |
           : `-- here
           `----

        error: the configuration in values.yaml is invalid
          hint: the configuration is one YAML or JSON object, as in spec.config
        ");
    }
}
