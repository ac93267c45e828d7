//! Reads the `generated.proto` files of Kubernetes, which are printed by a program and thus regular.

use std::collections::BTreeMap;

use regex::Regex;

use crate::Error;

/// A message.
#[derive(Debug, Default)]
pub(crate) struct Message {
    /// In the order of the file.
    pub(crate) fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    /// Number on the wire.
    pub(crate) number: u32,
    /// Name in the file.
    pub(crate) name: String,
    /// How often it may occur.
    pub(crate) cardinality: Cardinality,
    /// `string`, `int32`, ... or a message's full name; for a map, the type of its values.
    pub(crate) type_name: String,
}

/// How often a field may occur.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cardinality {
    /// Once.
    Single,
    /// Many times.
    List,
    /// As an entry of a map with keys of text.
    Map,
}

/// The package of a file.
pub(crate) fn package(text: &str) -> Result<String, Error> {
    let line = text.lines().find_map(|line| line.strip_prefix("package ")).ok_or("no package")?;
    Ok(line.trim_end_matches(';').to_owned())
}

/// The messages of a file, by full name.
pub(crate) fn messages(text: &str, package: &str) -> Result<BTreeMap<String, Message>, Error> {
    let start = Regex::new(r"^message (\w+) \{$")?;
    let single = Regex::new(r"^  (optional|repeated) \.?([\w.]+) (\w+) = (\d+);$")?;
    let map = Regex::new(r"^  map<string, \.?([\w.]+)> (\w+) = (\d+);$")?;
    let full = |name: &str| {
        let scalar = ["string", "bytes", "bool", "int32", "int64", "double"].contains(&name);
        if scalar || name.contains('.') { name.to_owned() } else { format!("{package}.{name}") }
    };
    let mut messages = BTreeMap::new();
    let mut current: Option<(String, Message)> = None;
    for line in text.lines().map(str::trim_end).filter(|line| !line.trim_start().starts_with("//")) {
        let field = if let Some(found) = single.captures(line) {
            let cardinality = if &found[1] == "repeated" { Cardinality::List } else { Cardinality::Single };
            Field { number: found[4].parse()?, name: found[3].to_owned(), cardinality, type_name: full(&found[2]) }
        } else if let Some(found) = map.captures(line) {
            let cardinality = Cardinality::Map;
            Field { number: found[3].parse()?, name: found[2].to_owned(), cardinality, type_name: full(&found[1]) }
        } else if let Some(found) = start.captures(line) {
            current = Some((format!("{package}.{}", &found[1]), Message::default()));
            continue;
        } else if line == "}" {
            messages.extend(current.take());
            continue;
        } else if current.is_some() && !line.is_empty() {
            return Err(format!("{package}: not understood: {line}").into());
        } else {
            continue;
        };
        current.as_mut().ok_or_else(|| format!("{package}: no message around {line}"))?.1.fields.push(field);
    }
    Ok(messages)
}
