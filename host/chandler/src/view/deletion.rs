//! What `chandler delete` deletes and keeps.

use chandler_rollout::DeletionPreview;

use super::text::{count, one_line};

/// The objects, one per line.
pub fn text(preview: &DeletionPreview) -> String {
    let mut text = String::new();
    for (sign, objects) in [("- delete", &preview.deleted), ("  keep", &preview.orphaned)] {
        for object in objects {
            text.extend([sign, " ", &one_line(&object.to_string()), "\n"]);
        }
    }
    for crd in &preview.without_conversion {
        text.extend([
            "! reset the conversion of ",
            &one_line(&crd.name),
            " to strategy None, because the Service of its webhook is deleted: every version of its custom resources can be read and \
             deleted without the webhook, shows only the fields of its own schema, and loses the others if it is written\n",
        ]);
    }
    for in_use in &preview.in_use {
        let sign = if preview.held { "! custom resources block the deletion:" } else { "- delete custom resources:" };
        text.extend([sign, " ", &one_line(&in_use.to_string()), "\n"]);
    }
    text
}

/// The counts, on one line.
pub fn summary(preview: &DeletionPreview) -> String {
    let custom: u64 = preview.in_use.iter().filter_map(|in_use| in_use.count).sum();
    let custom = match (preview.held, custom) {
        (false, 1..) => format!(", and {custom} custom resources with their CRDs"),
        _ => String::new(),
    };
    format!("{} to delete{custom}, {} to keep", count(preview.deleted.len(), "object"), preview.orphaned.len())
}

#[cfg(test)]
mod tests {
    use chandler_core::ObjectKey;
    use chandler_rollout::CrdInUse;

    use super::*;

    fn crd() -> ObjectKey {
        ObjectKey {
            group: "apiextensions.k8s.io".into(),
            version: "v1".into(),
            kind: "CustomResourceDefinition".into(),
            namespace: None,
            name: "oxen.example.com".into(),
        }
    }

    fn preview(held: bool) -> DeletionPreview {
        let in_use =
            CrdInUse { crd: crd(), count: Some(3), more: false, namespaces: 1, examples: vec!["shop/a".into()] };
        DeletionPreview { held, deleted: vec![crd()], in_use: vec![in_use], ..DeletionPreview::default() }
    }

    #[test]
    fn deleted_and_kept_objects_and_custom_resources_are_listed() {
        insta::assert_snapshot!(text(&preview(true)) + &summary(&preview(true)), @r"
        - delete CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
        ! custom resources block the deletion: oxen.example.com: 3 in 1 namespace (shop/a, …)
        1 object to delete, 0 to keep
        ");
        insta::assert_snapshot!(text(&preview(false)) + &summary(&preview(false)), @r"
        - delete CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
        - delete custom resources: oxen.example.com: 3 in 1 namespace (shop/a, …)
        1 object to delete, and 3 custom resources with their CRDs, 0 to keep
        ");
        let orphaned = DeletionPreview { orphaned: vec![crd()], ..DeletionPreview::default() };
        insta::assert_snapshot!(text(&orphaned) + &summary(&orphaned), @r"
          keep CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
        0 objects to delete, 1 to keep
        ");
        let stranded = DeletionPreview { without_conversion: vec![crd()], ..orphaned };
        insta::assert_snapshot!(text(&stranded), @r"
          keep CustomResourceDefinition.apiextensions.k8s.io oxen.example.com
        ! reset the conversion of oxen.example.com to strategy None, because the Service of its webhook is deleted: every version of its custom resources can be read and deleted without the webhook, shows only the fields of its own schema, and loses the others if it is written
        ");
    }
}
