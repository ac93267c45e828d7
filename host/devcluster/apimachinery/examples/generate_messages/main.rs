//! Generates the table of protobuf messages from the source of Kubernetes: field numbers and types from the `generated.proto`
//! files, names in JSON and `omitempty` from the tags of the Go types beside them.
//!
//! ```console
//! $ cargo run -p chandler-devcluster-apimachinery --example generate_messages -- <path to Kubernetes' staging/src/k8s.io> <version> [--check]
//! ```
//!
//! With `--check` nothing is written; the exit status reports whether the committed table is up to date.

mod golang;
mod proto;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
};

use golang::{Go, Package};
use proto::{Cardinality, Field, Message};

type Error = Box<dyn std::error::Error>;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/protobuf/generated/kubernetes-v1.36.txt.gz");

/// Where stable API types are declared.
const ROOTS: [&str; 4] =
    ["api", "apimachinery/pkg/apis/meta", "apiextensions-apiserver/pkg/apis", "kube-aggregator/pkg/apis"];
/// Packages that types refer to.
const SHARED: [&str; 3] = ["apimachinery/pkg/api/resource", "apimachinery/pkg/runtime", "apimachinery/pkg/util/intstr"];
/// Types that the decoder handles specially, without fields in the table.
const SPECIAL: [&str; 4] = ["Quantity", "IntOrString", "Time", "MicroTime"];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, version, rest @ ..] = arguments.as_slice() else {
        return Err("usage: generate <path to staging/src/k8s.io> <version of Kubernetes> [--check]".into());
    };
    let table = table(Path::new(source), version)?;
    if rest.iter().any(|argument| argument == "--check") {
        let mut committed = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(TABLE)?).read_to_string(&mut committed)?;
        return if committed == table { Ok(()) } else { Err(format!("{TABLE} is not what {source} yields").into()) };
    }
    let mut encoder = flate2::write::GzEncoder::new(std::fs::File::create(TABLE)?, flate2::Compression::best());
    encoder.write_all(table.as_bytes())?;
    encoder.finish()?;
    Ok(())
}

/// Directories of stable versions, and those they share.
fn packages(source: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<PathBuf> = SHARED.iter().map(|directory| source.join(directory)).collect();
    let mut pending: Vec<PathBuf> = ROOTS.iter().map(|directory| source.join(directory)).collect();
    while let Some(directory) = pending.pop() {
        let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let stable = name.strip_prefix('v').is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()));
        if stable && directory.join("generated.proto").exists() {
            found.push(directory.clone());
        }
        for entry in std::fs::read_dir(&directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn table(source: &Path, version: &str) -> Result<String, Error> {
    let mut go = Go::default();
    let mut messages: BTreeMap<String, Message> = BTreeMap::new();
    let mut group_versions: BTreeMap<String, String> = BTreeMap::new();
    for directory in packages(source)? {
        let text = std::fs::read_to_string(directory.join("generated.proto"))?;
        let package = proto::package(&text)?;
        messages.extend(proto::messages(&text, &package)?);
        let Package { group, types } = golang::read(&directory, &package)?;
        if let Some(group) = group {
            let version = directory.file_name().unwrap_or_default().to_string_lossy();
            let group_version = if group.is_empty() { version.into_owned() } else { format!("{group}/{version}") };
            group_versions.insert(group_version, definition(&package));
        }
        go.extend(types);
    }
    let mut out = format!(
        "# Kubernetes {version}, staging/src/k8s.io: generated.proto and the tags of the Go types; Apache-2.0\n"
    );
    for (group_version, package) in &group_versions {
        writeln!(out, "package {group_version} {package}")?;
    }
    for name in reachable(&messages, &go)? {
        let message = messages.get(&name).ok_or_else(|| format!("no message {name}"))?;
        writeln!(out, "message {}", definition(&name))?;
        for field in &message.fields {
            writeln!(out, "{}", row(&name, field, &go)?)?;
        }
    }
    Ok(out)
}

/// Every kind, and the messages that kinds hold.
fn reachable(messages: &BTreeMap<String, Message>, go: &Go) -> Result<BTreeSet<String>, Error> {
    let mut pending: Vec<String> = messages.keys().filter(|name| go.is_kind(name)).cloned().collect();
    let mut reached = BTreeSet::new();
    while let Some(name) = pending.pop() {
        if reached.contains(&name) {
            continue;
        }
        let message = messages.get(&name).ok_or_else(|| format!("no message {name}"))?;
        pending
            .extend(message.fields.iter().filter(|field| field.type_name.contains('.')).map(|f| f.type_name.clone()));
        reached.insert(name);
    }
    Ok(reached)
}

fn row(message: &str, field: &Field, go: &Go) -> Result<String, Error> {
    let simple = message.rsplit('.').next().unwrap_or_default();
    let cardinality = match field.cardinality {
        Cardinality::Single => "single",
        Cardinality::List => "list",
        Cardinality::Map => "map",
    };
    let field_type = if field.type_name.contains('.') { definition(&field.type_name) } else { field.type_name.clone() };
    let (name, presence) = match go.field(message, field.number) {
        // A list with its own Go type: the message is replaced by its only field.
        None if go.is_list(message) => ("=".to_owned(), "plain"),
        // Written and read by code of its own; the decoder knows these by name.
        None if SPECIAL.contains(&simple) => (field.name.clone(), "plain"),
        None => return Err(format!("{message}: field {} has no tag in Go", field.name).into()),
        Some(tag) if tag.inline => ("-".to_owned(), "inline"),
        Some(tag) => {
            let scalar = !field.type_name.contains('.') && matches!(field.cardinality, Cardinality::Single);
            let presence = match (scalar && !tag.pointer, tag.omit_empty) {
                (false, _) => "plain",
                (true, true) => "nonzero",
                // No bytes at all are null.
                (true, false) if field.type_name == "bytes" => "plain",
                (true, false) => "always",
            };
            // Types that Go writes as JSON by code of their own have no names there.
            let name = if tag.name.is_empty() { &field.name } else { &tag.name };
            (name.clone(), presence)
        }
    };
    Ok(format!("{} {name} {cardinality} {field_type} {presence}", field.number))
}

/// A message's name as OpenAPI documents have it.
fn definition(name: &str) -> String {
    let name = name.replacen("k8s.io.", "io.k8s.", 1);
    name.replace("apiextensions_apiserver", "apiextensions-apiserver").replace("kube_aggregator", "kube-aggregator")
}
