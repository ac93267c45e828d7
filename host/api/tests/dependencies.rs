//! The API types stay light: a program that only reads BundleDeployments compiles no CEL, JSON Schema or regular expressions.

use std::process::Command;

/// Crates that evaluate expressions, schemas or patterns, and the crates of this workspace that use them.
const HEAVY: &[&str] =
    &["cel", "kube-cel", "jsonschema", "jsonschema-regex", "chandler-expression", "chandler-crd-upgrade"];

#[test]
fn the_api_types_depend_on_no_expression_engine() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--package", "chandler-api", "--edges", "normal", "--prefix", "none", "--format", "{lib}"])
        .args(["--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&tree.stdout).into_owned();
    assert!(tree.status.success(), "cargo tree: {}", String::from_utf8_lossy(&tree.stderr));
    let names: Vec<String> = text.lines().map(|line| line.trim().replace('_', "-")).collect();
    assert!(names.iter().any(|name| name == "chandler-core"), "{text}");
    let found: Vec<&String> = names.iter().filter(|name| HEAVY.contains(&name.as_str())).collect();
    assert!(found.is_empty(), "host/api depends on {found:?}: move the types to host/core");
}
