//! Lists whose items have keys.

use chandler_yaml::{
    Node,
    list_keys::{ACCEPTED_ONCE, DuplicateItem, duplicate_items, pod_pointer},
};

use crate::{Diagnostic, Location};

/// The code of the findings.
pub const CODE: &str = "DuplicateListKey";

/// An error for each item of a list that has the key of an earlier one, such as a second environment variable of the same name; with the
/// code `DuplicateListKey`. Only lists are checked where an API server accepts duplicates of a new object, and refuses each later update.
pub fn check_lists(object: &Node, path: &str) -> Vec<Diagnostic> {
    let text = |name| object.get(name).and_then(Node::as_str).unwrap_or_default();
    // Most objects have no such list, and a large one takes long to convert.
    if pod_pointer(text("apiVersion"), text("kind")).is_none() && text("kind") != "ServiceAccount" {
        return Vec::new();
    }
    let found = duplicate_items(&object.to_json());
    found.iter().map(|duplicate| duplicate_finding(duplicate, object, path)).collect()
}

fn duplicate_finding(duplicate: &DuplicateItem, object: &Node, path: &str) -> Diagnostic {
    let pointer = duplicate.pointer();
    let first = Location::of(path, object.nearest(&format!("{}/{}", duplicate.list, duplicate.first)));
    let finding = Diagnostic::error(CODE, format!("{duplicate}: {ACCEPTED_ONCE}")).at(path);
    finding.node(object.nearest(&pointer)).pointer(&pointer).help(format!("remove it, or the item at {first}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::parse_documents;

    #[test]
    fn the_second_item_is_found_with_its_place() {
        let yaml = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  template:\n    spec:\n      containers:\n      - name: \
                    web\n        env:\n        - name: MODE\n          value: a\n        - name: MODE\n          value: b\n---\napiVersion: \
                    v1\nkind: ConfigMap\nmetadata: {name: web}\n---\ntext\n";
        let nodes = parse_documents(yaml.as_bytes(), "manifests/a.yaml").unwrap();
        let findings: Vec<Diagnostic> = nodes.iter().flat_map(|node| check_lists(node, "manifests/a.yaml")).collect();
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"manifests/a.yaml:12:11 (/spec/template/spec/containers/0/env/1): spec.template.spec.containers[0].env: duplicate entries for key [name="MODE"]: an API server accepts it once and refuses each later update (help: remove it, or the item at manifests/a.yaml:10:11)"#);
    }
}
