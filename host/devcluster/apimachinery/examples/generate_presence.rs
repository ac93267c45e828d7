//! Generates the table of built-in fields that are serialised even when empty, from the tags of the Go structs of Kubernetes.
//!
//! ```console
//! $ cargo run -p chandler-devcluster-apimachinery --example generate_presence -- <k8s.io/kubernetes/staging/src/k8s.io> [--check]
//! ```
//!
//! With `--check` nothing is written; the exit status reports whether the committed table is up to date.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use chandler_devcluster_apimachinery::schema::{Builtins, Schema, Shape};
use regex::Regex;

type Error = Box<dyn std::error::Error>;

const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/schema/generated/presence-v1.36.txt");

const HEADER: &str = "\
# Made by examples/generate_presence.rs from the Go structs of Kubernetes 1.36 (Apache-2.0).
# One type per line with the fields that differ from the rule `required is written, optional is omitted when zero`:
# +field is written, -field omitted, *field a pointer (omitted when nil, whatever it points to), &field a pointer written as null.
";

/// A field of a Go struct.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    pointer: bool,
    omitted: bool,
    /// Whether a zero struct is omitted.
    omit_zero: bool,
}

/// The structs of a package: their fields, and the names of structs that they embed.
type Structs = BTreeMap<String, (Vec<Field>, Vec<String>)>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, rest @ ..] = arguments.as_slice() else {
        return Err("usage: presence <path of k8s.io> [--check]".into());
    };
    let mut table = HEADER.to_owned();
    for (prefix, files) in packages(Path::new(root))? {
        let structs = structs(&files)?;
        for name in structs.keys() {
            let definition = format!("{prefix}.{name}");
            let Some(schema) = Builtins::get().definition(&definition) else { continue };
            let marks: Vec<String> = fields(&structs, name).iter().filter_map(|field| mark(&schema, field)).collect();
            if !marks.is_empty() {
                writeln!(table, "{definition} {}", marks.join(" "))?;
            }
        }
    }
    if rest.iter().any(|argument| argument == "--check") {
        let committed = std::fs::read_to_string(TABLE)?;
        return if committed == table { Ok(()) } else { Err(format!("{TABLE} is not what {root} yields").into()) };
    }
    Ok(std::fs::write(TABLE, table)?)
}

/// Prefixes of definitions, each with the Go files that hold its types.
fn packages(root: &Path) -> Result<BTreeMap<String, Vec<PathBuf>>, Error> {
    let mut packages = BTreeMap::new();
    let mut add = |prefix: String, directory: &Path| -> Result<(), Error> {
        let files = std::fs::read_dir(directory)?.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> = files
            .filter(|file| {
                let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let go = file.extension().is_some_and(|extension| extension == "go");
                go && name.contains("types") && !name.ends_with("_test.go")
            })
            .collect();
        files.sort();
        packages.insert(prefix, files);
        Ok(())
    };
    for group in std::fs::read_dir(root.join("api"))? {
        let group = group?.path();
        let versions =
            if group.is_dir() { std::fs::read_dir(&group)?.collect::<Result<Vec<_>, _>>()? } else { Vec::new() };
        for version in versions.into_iter().map(|version| version.path()).filter(|version| version.is_dir()) {
            let part = |path: &Path| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            add(format!("io.k8s.api.{}.{}", part(&group), part(&version)), &version)?;
        }
    }
    for (prefix, directory) in [
        (
            "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
            "apiextensions-apiserver/pkg/apis/apiextensions/v1",
        ),
        ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1", "kube-aggregator/pkg/apis/apiregistration/v1"),
        ("io.k8s.apimachinery.pkg.apis.meta.v1", "apimachinery/pkg/apis/meta/v1"),
    ] {
        add(prefix.to_owned(), &root.join(directory))?;
    }
    Ok(packages)
}

fn structs(files: &[PathBuf]) -> Result<Structs, Error> {
    let declaration = Regex::new(r"(?ms)^type (\w+) struct \{\n(.*?)^\}")?;
    let member = Regex::new(r#"^\s*(?:(\w+)\s+)?(\S+)\s+`[^`]*json:"([^",]*)([^"]*)""#)?;
    let embedded = Regex::new(r#"^\s*(?:\w+\.)?(\w+)\s+`[^`]*json:",inline""#)?;
    let mut structs = Structs::new();
    for file in files {
        let text = std::fs::read_to_string(file)?;
        for declaration in declaration.captures_iter(&text) {
            let entry = structs.entry(declaration[1].to_owned()).or_default();
            for line in declaration[2].lines() {
                if let Some(found) = embedded.captures(line) {
                    entry.1.push(found[1].to_owned());
                } else if let Some(found) = member.captures(line).filter(|found| !found[3].is_empty()) {
                    entry.0.push(Field {
                        name: found[3].to_owned(),
                        pointer: found[2].starts_with('*'),
                        omitted: found[4].contains("omitempty") || found[4].contains("omitzero"),
                        omit_zero: found[4].contains("omitzero"),
                    });
                }
            }
        }
    }
    Ok(structs)
}

/// The fields of a struct and of those that it embeds.
fn fields(structs: &Structs, name: &str) -> Vec<Field> {
    let Some((own, embedded)) = structs.get(name) else { return Vec::new() };
    let mut all = own.clone();
    all.extend(embedded.iter().flat_map(|name| fields(structs, name)));
    all
}

/// How the field differs from the rule; `None` when it does not.
fn mark(schema: &Schema, field: &Field) -> Option<String> {
    let Shape::Object { properties, required, .. } = &schema.shape else { return None };
    let property = properties.get(&field.name)?;
    let required = required.contains(&field.name);
    let name = &field.name;
    // A struct that is not a pointer is written even if it is tagged to be omitted when empty; times marshal themselves.
    let is_struct = matches!(&property.shape, Shape::Object { properties, .. } if !properties.is_empty())
        && !field.pointer
        && !field.omit_zero;
    let scalar = matches!(property.shape, Shape::Scalar(_));
    let written = !field.omitted || is_struct;
    match (field.pointer, written) {
        (true, true) => Some(format!("&{name}")),
        (true, false) if scalar => Some(format!("*{name}")),
        (true, false) => required.then(|| format!("-{name}")),
        (false, true) => (!required).then(|| format!("+{name}")),
        (false, false) => required.then(|| format!("-{name}")),
    }
}
