//! Parses the tags of Go structs: `json:"replicas,omitempty" protobuf:"varint,1,opt,name=replicas"`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use regex::Regex;

use crate::Error;

/// The types of all packages, by the full name of their message.
#[derive(Debug, Default)]
pub(crate) struct Go {
    fields: BTreeMap<(String, u32), Tag>,
    kinds: BTreeSet<String>,
    lists: BTreeSet<String>,
}

/// The tags of one field.
#[derive(Debug)]
pub(crate) struct Tag {
    /// Name in JSON.
    pub(crate) name: String,
    /// Whether a zero value is omitted.
    pub(crate) omit_empty: bool,
    /// Whether its fields are inlined into the parent object.
    pub(crate) inline: bool,
    /// Whether absence differs from zero.
    pub(crate) pointer: bool,
}

/// One package.
#[derive(Debug)]
pub(crate) struct Package {
    /// The API group it declares.
    pub(crate) group: Option<String>,
    /// Its types.
    pub(crate) types: Go,
}

impl Go {
    /// Adds the types of another package.
    pub(crate) fn extend(&mut self, other: Self) {
        self.fields.extend(other.fields);
        self.kinds.extend(other.kinds);
        self.lists.extend(other.lists);
    }

    /// The tags of a field.
    pub(crate) fn field(&self, message: &str, number: u32) -> Option<&Tag> {
        self.fields.get(&(message.to_owned(), number))
    }

    /// Whether a type has `apiVersion` and `kind`.
    pub(crate) fn is_kind(&self, message: &str) -> bool {
        self.kinds.contains(message)
    }

    /// Whether a type is a slice with a name.
    pub(crate) fn is_list(&self, message: &str) -> bool {
        self.lists.contains(message)
    }
}

/// Reads the Go files of a directory.
pub(crate) fn read(directory: &Path, package: &str) -> Result<Package, Error> {
    let group_name = Regex::new(r#"(?m)^const GroupName = "([^"]*)"$"#)?;
    let mut paths: Vec<_> =
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut read = Package { group: None, types: Go::default() };
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.extension().is_none_or(|extension| extension != "go") || name.ends_with("_test.go") {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        if let Some(found) = group_name.captures(&text) {
            read.group = Some(found[1].to_owned());
        }
        types(&text, package, &mut read.types)?;
    }
    Ok(read)
}

fn types(text: &str, package: &str, go: &mut Go) -> Result<(), Error> {
    let start = Regex::new(r"^type (\w+) struct \{")?;
    let list = Regex::new(r"^type (\w+) \[\]")?;
    let field = Regex::new(r"^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`(.*)`")?;
    let json = Regex::new(r#"json:"([^"]*)""#)?;
    let protobuf = Regex::new(r#"protobuf:"\w+,(\d+)"#)?;
    let mut current = String::new();
    for line in text.lines() {
        if let Some(found) = start.captures(line) {
            current = format!("{package}.{}", &found[1]);
        } else if let Some(found) = list.captures(line) {
            go.lists.insert(format!("{package}.{}", &found[1]));
        } else if line == "}" {
            current.clear();
        } else if let (false, Some(found)) = (current.is_empty(), field.captures(line)) {
            let (field_type, tags) = (&found[2], &found[3]);
            let json = json.captures(tags).map(|found| found[1].to_owned()).unwrap_or_default();
            if matches!(field_type, "metav1.TypeMeta" | "TypeMeta") && json.contains("inline") {
                go.kinds.insert(current.clone());
            }
            let Some(number) = protobuf.captures(tags) else { continue };
            let mut parts = json.split(',');
            let name = parts.next().unwrap_or_default().to_owned();
            let options: Vec<&str> = parts.collect();
            let tag = Tag {
                name,
                omit_empty: options.contains(&"omitempty") || options.contains(&"omitzero"),
                inline: options.contains(&"inline"),
                pointer: field_type.starts_with('*'),
            };
            go.fields.insert((current.clone(), number[1].parse()?), tag);
        }
    }
    Ok(())
}
