//! Generates a catalog, or measures reading and indexing one.
//!
//! ```text
//! cargo run --release -p chandler-catalog --example catalogs -- generate DIRECTORY yaml|json [PACKAGES] [BUNDLES]
//! cargo run --release -p chandler-catalog --example catalogs -- index DIRECTORY CACHE
//! cargo run --release -p chandler-catalog --example catalogs -- lint DIRECTORY CACHE
//! ```
//!
//! By default a generated catalog has 333 packages with 7,016 bundles in all, in 125 MB: like the largest published one.

#![allow(clippy::print_stdout, reason = "a tool")]

use std::{env, error::Error, fmt::Write as _, fs, path::Path, time::Instant};

use chandler_catalog::{Directory, Indexes, Limits, Query, lint};
use chandler_core::Content as _;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["generate", directory, form, rest @ ..] => {
            let number = |at: usize, default| rest.get(at).map_or(Ok(default), |text| text.parse());
            generate(Path::new(directory), *form == "json", number(0, 333)?, number(1, 7016)?)
        }
        ["index", directory, cache] => index(directory, cache),
        ["lint", directory, cache] => check(directory, cache),
        _ => {
            Err("generate DIRECTORY yaml|json [PACKAGES] [BUNDLES], index DIRECTORY CACHE, or lint DIRECTORY CACHE"
                .into())
        }
    }
}

fn index(directory: &str, cache: &str) -> Result<(), Box<dyn Error>> {
    let limits = Limits::default();
    let start = Instant::now();
    let content = Directory::open(directory, limits.files)?;
    println!("{:?}: hashed {} MB", start.elapsed(), content.total_bytes() / 1_000_000);
    let indexes = Indexes::open(cache)?;
    let start = Instant::now();
    let index = indexes.get_or_build(&content, &limits)?;
    println!("{:?}: built or opened an index of {} documents", start.elapsed(), index.len());
    let start = Instant::now();
    let index = indexes.get(content.digest())?.unwrap_or(index);
    println!("{:?}: opened again", start.elapsed());
    let start = Instant::now();
    let names: Vec<_> = index.packages().collect::<Result<_, _>>()?;
    println!("{:?}: listed {} packages", start.elapsed(), names.len());
    let largest = names.iter().max_by_key(|entry| entry.documents).ok_or("no package")?;
    let start = Instant::now();
    let blobs = index.package(&largest.name)?.unwrap_or_default();
    println!("{:?}: read package {} of {} bundles", start.elapsed(), largest.name, blobs.bundles.len());
    let start = Instant::now();
    let mut bundles = 0;
    for entry in &names {
        bundles += index.package(&entry.name)?.unwrap_or_default().bundles.len();
    }
    println!("{:?}: read all packages, {bundles} bundles", start.elapsed());
    let start = Instant::now();
    let packages = index.metas(Query { schema: Some("olm.package"), ..Query::default() })?.count();
    println!("{:?}: found {packages} documents by schema alone", start.elapsed());
    Ok(())
}

fn check(directory: &str, cache: &str) -> Result<(), Box<dyn Error>> {
    let limits = Limits::default();
    let content = Directory::open(directory, limits.files)?;
    let (index, mut findings) = Indexes::open(cache)?.build_for_lint(&content, &limits, 1000)?;
    findings.extend(lint::catalog(&index, 1000)?);
    for finding in findings {
        println!("{}", finding.diagnostic());
    }
    Ok(())
}

/// Writes one file for each package: bundles of 17 KB, most of it the metadata of their ClusterServiceVersions.
fn generate(directory: &Path, json: bool, packages: usize, bundles: usize) -> Result<(), Box<dyn Error>> {
    for package in 0..packages {
        let name = format!("package-{package}");
        let count = bundles / packages + usize::from(package < bundles % packages);
        let mut text = String::new();
        let mut write = |document: serde_json::Value| -> Result<(), Box<dyn Error>> {
            if json {
                writeln!(text, "{}", serde_json::to_string_pretty(&document)?)?;
            } else {
                text.push_str("---\n");
                yaml(&mut text, &document, 0);
            }
            Ok(())
        };
        let icon = "iVBORw0KGgoAAAANSUhEUgAA".repeat(400);
        write(serde_json::json!({
            "schema": "olm.package", "name": name, "defaultChannel": "stable",
            "icon": {"base64data": icon, "mediatype": "image/png"},
        }))?;
        let entries: Vec<_> = (0..count).map(|number| entry(&name, number)).collect();
        write(serde_json::json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": entries}))?;
        for number in 0..count {
            write(bundle(&name, number))?;
        }
        let place = directory.join(&name);
        fs::create_dir_all(&place)?;
        fs::write(place.join(if json { "catalog.json" } else { "catalog.yaml" }), text)?;
    }
    Ok(())
}

fn entry(package: &str, number: usize) -> serde_json::Value {
    let name = format!("{package}.v1.{number}.0");
    match number.checked_sub(1) {
        None => serde_json::json!({"name": name}),
        Some(before) => serde_json::json!({"name": name, "replaces": format!("{package}.v1.{before}.0"),
            "skipRange": format!(">=1.0.0 <1.{number}.0")}),
    }
}

fn bundle(package: &str, number: usize) -> serde_json::Value {
    let kinds = (0..4).map(|kind| {
        serde_json::json!({"type": "olm.gvk",
            "value": {"group": format!("{package}.example.com"), "kind": format!("Kind{kind}"), "version": "v1"}})
    });
    let mut properties: Vec<_> = kinds.collect();
    properties.push(serde_json::json!({"type": "olm.package",
        "value": {"packageName": package, "version": format!("1.{number}.0")}}));
    let words = "The operator installs, configures and upgrades the application, and keeps a backup of its data.\n";
    let examples =
        r#"[{"apiVersion":"example.com/v1","kind":"Kind0","metadata":{"name":"example"},"spec":{"replicas":3}}]"#;
    let descriptions: Vec<_> = (0..40)
        .map(|at| {
            serde_json::json!({"kind": format!("Kind{at}"), "name": format!("kind{at}.example.com"),
            "version": "v1", "displayName": format!("Kind {at}"), "description": "One of the kinds of this operator"})
        })
        .collect();
    properties.push(serde_json::json!({"type": "olm.csv.metadata", "value": {
        "annotations": {"alm-examples": examples.repeat(12), "capabilities": "Deep Insights", "description": words.trim()},
        "apiServiceDefinitions": {}, "crdDescriptions": {"owned": descriptions},
        "description": words.repeat(76), "displayName": format!("Package {package}"),
        "installModes": [{"supported": false, "type": "OwnNamespace"}, {"supported": true, "type": "AllNamespaces"}],
        "keywords": ["example", "database"], "maintainers": [{"email": "a@example.com", "name": "A"}],
        "maturity": "stable", "provider": {"name": "Example"},
    }}));
    let images: Vec<_> = (0..5)
        .map(|at| serde_json::json!({"name": format!("image-{at}"), "image": format!("quay.io/example/{package}-{at}:1.{number}.0")}))
        .collect();
    serde_json::json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v1.{number}.0"),
        "image": format!("quay.io/example/{package}:1.{number}.0"), "properties": properties, "relatedImages": images})
}

/// YAML in block style, as opm writes it.
fn yaml(text: &mut String, value: &serde_json::Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        serde_json::Value::Object(fields) if !fields.is_empty() => {
            for (at, (key, value)) in fields.iter().enumerate() {
                if at > 0 || !text.ends_with("- ") {
                    text.push_str(&pad);
                }
                let _ = write!(text, "{key}:");
                match value {
                    serde_json::Value::Object(inner) if !inner.is_empty() => {
                        text.push('\n');
                        yaml(text, value, indent + 2);
                    }
                    serde_json::Value::Array(items) if !items.is_empty() => {
                        text.push('\n');
                        for item in items {
                            text.push_str(&pad);
                            text.push_str("- ");
                            yaml(text, item, indent + 2);
                        }
                    }
                    serde_json::Value::String(lines) if lines.contains('\n') => {
                        text.push_str(" |\n");
                        for line in lines.lines() {
                            let _ = writeln!(text, "{pad}  {line}");
                        }
                    }
                    scalar => {
                        text.push(' ');
                        yaml(text, scalar, indent);
                    }
                }
            }
        }
        scalar => {
            let _ = writeln!(text, "{scalar}");
        }
    }
}
