//! What `chandler uninstall` deletes and keeps.

use chandler_core::ObjectKey;
use chandler_rollout::DeletionPreview;
use serde::Serialize;

use super::{
    deletion,
    text::{count, one_line},
};

/// What happens.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Uninstallation {
    /// Whether the installed software stays.
    pub keeps_installed: bool,
    /// Whether the controller works meanwhile. Without it, the command removes the finalizers.
    pub controller: bool,
    /// The objects of Chandler, which are deleted.
    pub objects: Vec<OwnObject>,
    /// The ConfigMaps that decide sets, which are deleted.
    pub decisions: Vec<ObjectKey>,
    /// The objects of the installation, which are deleted, in this order.
    pub installation: Vec<ObjectKey>,
    /// What is deleted with the namespace of the controller, by kind; empty if the namespace stays.
    pub with_namespace: Vec<ObjectKey>,
    /// What stays.
    pub kept: Vec<ObjectKey>,
    /// Objects of others that have the name of an object of the installation, and stay.
    pub foreign: Vec<ObjectKey>,
}

/// An object of a kind of Chandler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnObject {
    /// The object.
    pub key: ObjectKey,
    /// What its deletion deletes and keeps, for a BundleDeployment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<DeletionPreview>,
}

/// The objects, one per line, with the objects of a bundle below its BundleDeployment.
pub fn text(all: &Uninstallation) -> String {
    let mut text = String::new();
    for OwnObject { key, preview } in &all.objects {
        line(&mut text, "- delete", key);
        let below = preview.as_ref().map(deletion::text).unwrap_or_default();
        text.extend(below.lines().flat_map(|line| ["    ", line, "\n"]));
    }
    for (sign, keys) in [
        ("- delete", &all.decisions),
        ("- delete", &all.installation),
        ("- delete", &all.with_namespace),
        ("  keep", &all.kept),
    ] {
        for key in keys {
            line(&mut text, sign, key);
        }
    }
    for key in &all.foreign {
        let key = one_line(&key.to_string());
        text.extend(["  keep ", &key, ", which is not Chandler's\n"]);
    }
    text
}

fn line(text: &mut String, sign: &str, key: &ObjectKey) {
    text.extend([sign, " ", &one_line(&key.to_string()), "\n"]);
}

/// The counts, and what they mean, one line each.
pub fn summary(all: &Uninstallation) -> Vec<String> {
    let previews = || all.objects.iter().filter_map(|object| object.preview.as_ref());
    let deleted: usize = previews().map(|preview| preview.deleted.len()).sum();
    let kept: usize = previews().map(|preview| preview.orphaned.len()).sum();
    let ours = all.objects.len() + all.decisions.len();
    let mut lines = vec![format!(
        "{} of Chandler, {} of bundles and {} of the installation to delete; {} of bundles to keep",
        count(ours, "object"),
        count(deleted, "object"),
        count(all.installation.len() + all.with_namespace.len(), "object"),
        count(kept, "object"),
    )];
    if !all.controller && all.keeps_installed && !all.objects.is_empty() {
        lines.push(
            "no controller works: the objects of bundles stay with the labels of Chandler, and the command removes the finalizers"
                .to_owned(),
        );
    }
    if all.with_namespace.iter().any(|key| key.kind == "Secret") && all.keeps_installed {
        lines.push(
            "the records of Chandler are deleted with its namespace: a new installation needs `chandler adopt` for objects that stay; \
             --keep-namespace keeps the records"
                .to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(group: &str, kind: &str, namespace: Option<&str>, name: &str) -> ObjectKey {
        ObjectKey {
            group: group.into(),
            version: "v1".into(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        }
    }

    fn found() -> Uninstallation {
        let map = key("", "ConfigMap", Some("shop"), "a");
        let preview = DeletionPreview { orphaned: vec![map], ..DeletionPreview::default() };
        Uninstallation {
            keeps_installed: true,
            controller: false,
            objects: vec![
                OwnObject {
                    key: key("core.rukpak.io", "BundleDeployment", None, "harbour\nx"),
                    preview: Some(preview),
                },
                OwnObject { key: key("chandler.dev", "Catalog", None, "ours"), preview: None },
            ],
            decisions: Vec::new(),
            installation: vec![key("apps", "Deployment", Some("chandler-system"), "chandler")],
            with_namespace: vec![key("", "Secret", Some("chandler-system"), "record-harbour")],
            kept: vec![key("", "Namespace", None, "chandler-accounts")],
            foreign: vec![key("rbac.authorization.k8s.io", "ClusterRole", None, "chandler-view")],
        }
    }

    #[test]
    fn a_deletion_without_a_controller_keeps_nothing() {
        let deletes = Uninstallation { keeps_installed: false, ..found() };
        assert!(!summary(&deletes).iter().any(|line| line.contains("no controller works")));
    }

    #[test]
    fn every_object_is_listed_and_no_name_forges_a_line() {
        insta::assert_snapshot!(text(&found()) + &summary(&found()).join("\n"), @r"
        - delete BundleDeployment.core.rukpak.io harbour x
              keep ConfigMap shop/a
        - delete Catalog.chandler.dev ours
        - delete Deployment.apps chandler-system/chandler
        - delete Secret chandler-system/record-harbour
          keep Namespace chandler-accounts
          keep ClusterRole.rbac.authorization.k8s.io chandler-view, which is not Chandler's
        2 objects of Chandler, 0 objects of bundles and 2 objects of the installation to delete; 1 object of bundles to keep
        no controller works: the objects of bundles stay with the labels of Chandler, and the command removes the finalizers
        the records of Chandler are deleted with its namespace: a new installation needs `chandler adopt` for objects that stay; --keep-namespace keeps the records
        ");
    }
}
