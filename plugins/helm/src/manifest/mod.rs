//! Rendered templates as documents: manifests and hooks in the order of their installation, and the notes.

mod order;

use std::collections::BTreeMap;

use chandler_yaml::{Kind, Node};

use crate::yaml::{
    self,
    decode::{mistyped, text},
};

/// What templates render to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// The manifests in the order of their installation.
    pub manifests: Vec<Manifest>,
    /// The hooks, in the order of their kinds.
    pub hooks: Vec<Hook>,
    /// The text of the chart's `NOTES.txt`.
    pub notes: String,
    /// Remarks that Helm logs.
    pub warnings: Vec<String>,
}

/// A document that is not a hook.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The template it comes from.
    pub path: String,
    /// Its text, with one final line feed.
    pub text: String,
    /// Its kind; empty if it has none.
    pub kind: String,
    /// Its value. Nothing if the text only has comments.
    pub object: Option<Node>,
}

/// A document that is installed at an event.
#[derive(Clone, Debug, PartialEq)]
pub struct Hook {
    /// The template it comes from.
    pub path: String,
    /// The name of its object.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// Its text, without a final line feed, as Helm applies it.
    pub text: String,
    /// The events: `pre-install`, `test` …
    pub events: Vec<String>,
    /// Its place among the hooks of an event.
    pub weight: i32,
    /// When its object is deleted.
    pub delete_policies: Vec<String>,
    /// When its logs are written out.
    pub output_log_policies: Vec<String>,
    /// Its value.
    pub object: Option<Node>,
}

/// Why a rendered text is not a list of objects: Helm's text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("YAML parse error on {path}: {message}")]
pub struct DocumentError {
    /// The template.
    pub path: String,
    /// The line in its output, from 1, if the text is not YAML.
    pub line: Option<u32>,
    /// What is wrong.
    pub message: String,
}

/// The events that hooks can be for.
const EVENTS: [&str; 10] = [
    "pre-install",
    "post-install",
    "pre-delete",
    "post-delete",
    "pre-upgrade",
    "post-upgrade",
    "pre-rollback",
    "post-rollback",
    "test",
    "test-success",
];

/// Splits the output of the templates, by their paths, into documents. `chart` is the name of the outermost chart, whose notes are kept.
///
/// # Errors
/// The first document that is not YAML, or not an object.
pub fn documents(chart: &str, rendered: BTreeMap<String, String>) -> Result<Documents, DocumentError> {
    let mut all = Documents::default();
    for (path, text) in rendered {
        if path.ends_with("NOTES.txt") {
            if path == format!("{chart}/templates/NOTES.txt") {
                all.notes = text;
            }
            continue;
        }
        if path.rsplit('/').next().is_some_and(|name| name.starts_with('_')) || text.trim().is_empty() {
            continue;
        }
        let mut lines = 1;
        for (before, part) in split(&text) {
            lines += before;
            document(&path, part, lines, &mut all)?;
        }
    }
    all.manifests = order::by_kind(all.manifests, |manifest| &manifest.kind);
    all.hooks = order::by_kind(all.hooks, |hook| &hook.kind);
    Ok(all)
}

/// The documents of a text, without white space around them. The number is how many lines begin between the start of the last and of this one.
pub fn split(text: &str) -> Vec<(u32, &str)> {
    let space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\u{c}' | '\r');
    let trimmed = text.trim();
    let start = text.len() - text.trim_start().len();
    let mut parts = Vec::new();
    let (mut begin, mut search) = (0, 0);
    loop {
        // A separator is `---` at the begin of a line; white space around it belongs to it.
        let found = if search == 0 && trimmed.starts_with("---") {
            Some(0)
        } else {
            memchr::memmem::find(trimmed.as_bytes().get(search..).unwrap_or_default(), b"\n---")
                .map(|at| search + at + 1)
        };
        let end = found.unwrap_or(trimmed.len());
        let part = trimmed.get(begin..end).unwrap_or_default();
        let part = if found.is_some() { part.trim_end_matches(space) } else { part };
        if !part.is_empty() {
            parts.push((start + begin + (part.len() - part.trim_start().len()), part.trim()));
        }
        let Some(at) = found else { break };
        let rest = trimmed.get(at + 3..).unwrap_or_default();
        begin = at + 3 + (rest.len() - rest.trim_start_matches(space).len());
        // The line feed before the next separator may be among what was skipped.
        search = (at + 3).max(begin.saturating_sub(1));
    }
    let mut counted = 0;
    parts
        .into_iter()
        .map(|(at, part)| {
            let lines = memchr::memchr_iter(b'\n', text.as_bytes().get(counted..at).unwrap_or_default()).count();
            counted = at;
            (u32::try_from(lines).unwrap_or(u32::MAX), part)
        })
        .collect()
}

fn document(path: &str, text: &str, lines: u32, all: &mut Documents) -> Result<(), DocumentError> {
    let refuse = |line: Option<u32>, message: String| DocumentError { path: path.to_owned(), line, message };
    let parse = |text: &str| {
        yaml::documents(text)
            .map(|documents| documents.into_iter().next().map(|document| document.root))
            .map_err(|error| refuse(Some(lines.saturating_add(error.line).saturating_sub(1)), error.to_string()))
    };
    let whole = format!("{text}\n");
    let object = parse(&whole)?;
    let head = Head::read(object.as_ref()).map_err(|message| refuse(None, message))?;
    let Some(events) = head.annotation("helm.sh/hook") else {
        all.manifests.push(Manifest { path: path.to_owned(), text: whole, kind: head.kind, object });
        return Ok(());
    };
    let words = |text: &str| -> Vec<String> { text.split(',').map(|word| word.trim().to_lowercase()).collect() };
    let names = words(&events);
    if names.iter().any(|name| !EVENTS.contains(&name.as_str())) {
        all.warnings.push(format!("info: skipping unknown hook: {events:?}"));
        return Ok(());
    }
    let policies = |annotation: &str| head.annotation(annotation).map(|text| words(&text)).unwrap_or_default();
    all.hooks.push(Hook {
        path: path.to_owned(),
        name: head.name.clone(),
        kind: head.kind.clone(),
        events: names.into_iter().map(|name| if name == "test-success" { "test".to_owned() } else { name }).collect(),
        weight: head.annotation("helm.sh/hook-weight").and_then(|text| text.parse().ok()).unwrap_or_default(),
        delete_policies: policies("helm.sh/hook-delete-policy"),
        output_log_policies: policies("helm.sh/hook-output-log-policy"),
        object: parse(text)?,
        text: text.to_owned(),
    });
    Ok(())
}

/// What decides where a document belongs.
#[derive(Default)]
struct Head {
    kind: String,
    name: String,
    annotations: Vec<(String, String)>,
}

impl Head {
    fn read(object: Option<&Node>) -> Result<Self, String> {
        let mut head = Self::default();
        let Some(object) = object else { return Ok(head) };
        for (key, value) in entries(object, "Go value of type releaseutil.SimpleHead")? {
            match key {
                "apiVersion" => {
                    text(value, "SimpleHead.apiVersion")?;
                }
                "kind" => head.kind = text(value, "SimpleHead.kind")?.unwrap_or_default(),
                "metadata" if !value.is_null() => {
                    for (key, value) in entries(
                        value,
                        "Go struct field SimpleHead.metadata of type struct { Name string \"json:\\\"name\\\"\"; Annotations map[string]string \"json:\\\"annotations\\\"\" }",
                    )? {
                        match key {
                            "name" => head.name = text(value, "SimpleHead.metadata.name")?.unwrap_or_default(),
                            "annotations" if !value.is_null() => {
                                for (key, value) in entries(
                                    value,
                                    "Go struct field SimpleHead.metadata.annotations of type map[string]string",
                                )? {
                                    head.annotations.push((
                                        key.to_owned(),
                                        text(value, "SimpleHead.metadata.annotations")?.unwrap_or_default(),
                                    ));
                                }
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(head)
    }

    fn annotation(&self, name: &str) -> Option<String> {
        self.annotations.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
    }
}

fn entries<'a>(node: &'a Node, place: &str) -> Result<Vec<(&'a str, &'a Node)>, String> {
    match &node.kind {
        Kind::Mapping(mapping) => Ok(mapping.iter().map(|entry| (&*entry.key, &entry.value)).collect()),
        _ => Err(mistyped(node, place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(files: &[(&str, &str)]) -> Result<Documents, DocumentError> {
        documents("c", files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    #[test]
    fn a_text_is_split_at_lines_with_dashes() {
        for (text, parts) in [
            ("a: 1\n---\nb: 2\n", vec![(0, "a: 1"), (2, "b: 2")]),
            ("\n---\n\na: 1\n--- \n# x\n---b: 2", vec![(3, "a: 1"), (2, "# x"), (1, "b: 2")]),
            ("a: |\n  ---\n", vec![(0, "a: |\n  ---")]),
            ("---\n---\n---\n", vec![]),
            ("---\n---\na\n\n\n---\n", vec![(2, "a")]),
            ("", vec![]),
        ] {
            assert_eq!(split(text), parts, "{text:?}");
        }
    }

    #[test]
    fn manifests_are_sorted_by_kind_and_hooks_are_apart() {
        let hook = "kind: Job\nmetadata:\n  name: h\n  annotations:\n    helm.sh/hook: post-install, Test-Success\n    helm.sh/hook-weight: \"-5\"\n    helm.sh/hook-delete-policy: hook-succeeded,before-hook-creation\ndata: |\n  x\n";
        let unknown = "kind: Job\nmetadata: {name: u, annotations: {helm.sh/hook: later}}\n";
        let all = rendered(&[
            ("c/templates/b.yaml", "kind: Zebra\n---\nkind: Deployment\ndata: |\n  x\n"),
            ("c/templates/a.yaml", &format!("kind: Service\n---\nkind: Apple\n---\n{hook}---\n{unknown}")),
            ("c/templates/_helpers.tpl", "kind: Pod"),
            ("c/templates/NOTES.txt", "hello"),
            ("c/charts/s/templates/NOTES.txt", "no"),
            ("c/templates/empty.yaml", "\n\n"),
        ])
        .unwrap();
        let kinds: Vec<_> = all.manifests.iter().map(|manifest| manifest.kind.as_str()).collect();
        assert_eq!(kinds, ["Service", "Deployment", "Apple", "Zebra"]);
        assert_eq!(all.manifests[1].object.as_ref().unwrap().to_json()["data"], "x\n");
        let [hook] = all.hooks.as_slice() else { panic!("{:?}", all.hooks) };
        assert_eq!((hook.events.clone(), hook.weight), (vec!["post-install".to_owned(), "test".to_owned()], -5));
        assert_eq!(hook.delete_policies, ["hook-succeeded", "before-hook-creation"]);
        assert_eq!(hook.object.as_ref().unwrap().to_json()["data"], "x");
        assert_eq!((all.notes.as_str(), all.warnings.len()), ("hello", 1));
    }

    #[test]
    fn what_is_no_object_is_refused_with_its_place() {
        for (text, line, message) in [
            ("a: 1\n---\nb: 2\nc: [1\nd: 3\n", Some(5), None),
            (
                "just text",
                None,
                Some(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into Go value of type releaseutil.SimpleHead",
                ),
            ),
            (
                "kind: [a]",
                None,
                Some(
                    "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go struct field SimpleHead.kind of type string",
                ),
            ),
        ] {
            let error = rendered(&[("c/templates/a.yaml", text)]).unwrap_err();
            assert_eq!(error.line.is_some(), line.is_some(), "{error}");
            if let Some(message) = message {
                assert_eq!(error.message, message);
            }
            assert!(error.to_string().starts_with("YAML parse error on c/templates/a.yaml: error "), "{error}");
        }
        assert_eq!(rendered(&[("c/templates/a.yaml", "# only a comment")]).unwrap().manifests[0].object, None);
    }
}
