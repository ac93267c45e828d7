//! Changes that would restart what runs.

use chandler_rollout::{Change, ChangeKind};

/// The kinds whose controller replaces the Pods when their template changes.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// One line for each change of an existing workload that would replace its Pods, or that could not be compared.
pub fn restarts(changes: &[Change]) -> Vec<String> {
    changes.iter().filter_map(restart).collect()
}

fn restart(change: &Change) -> Option<String> {
    let object = &change.object;
    let is_workload = object.group == "apps" && WORKLOADS.contains(&object.kind.as_str());
    let exists = !matches!(change.kind, ChangeKind::Create | ChangeKind::Refuse);
    if !is_workload || !exists {
        return None;
    }
    if change.kind == ChangeKind::Recreate {
        return Some(format!("{object} would be deleted and created again"));
    }
    if let Some(note) = &change.note {
        return Some(format!("{object} could not be compared: {note}"));
    }
    let paths: Vec<&str> = change.fields.iter().map(|field| field.path.as_str()).collect();
    let template: Vec<&str> = paths.into_iter().filter(|path| path.starts_with("spec.template")).collect();
    (!template.is_empty()).then(|| format!("{object} would restart: {} would change", template.join(", ")))
}

#[cfg(test)]
mod tests {
    use chandler_core::ObjectKey;
    use chandler_rollout::FieldChange;

    use super::*;

    fn change(kind: ChangeKind, of: &str, path: &str, note: Option<&str>) -> Change {
        let object = ObjectKey {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: of.to_owned(),
            namespace: Some("n".to_owned()),
            name: "x".to_owned(),
        };
        let field = FieldChange { path: path.to_owned(), before: None, after: None };
        Change { kind, object, fields: vec![field], note: note.map(str::to_owned) }
    }

    #[test]
    fn a_change_of_a_pod_template_restarts_a_workload() {
        let image = "spec.template.spec.containers[name=a].image";
        for (kind, of, path, note, expected) in [
            (ChangeKind::Adopt, "Deployment", image, None, Some("would restart")),
            (ChangeKind::Adopt, "DaemonSet", "spec.template.metadata.labels.a", None, Some("would restart")),
            (ChangeKind::Adopt, "Deployment", "metadata.labels.a", None, None),
            (ChangeKind::Adopt, "Deployment", "spec.replicas", None, None),
            (ChangeKind::Adopt, "Deployment", "metadata.labels.a", Some("why"), Some("could not be compared: why")),
            (ChangeKind::Recreate, "StatefulSet", "spec.serviceName", None, Some("created again")),
            (ChangeKind::Create, "Deployment", image, None, None),
            (ChangeKind::Adopt, "ControllerRevision", image, None, None),
        ] {
            let found = restarts(&[change(kind, of, path, note)]);
            let matches = match expected {
                Some(part) => found.len() == 1 && found[0].contains(part),
                None => found.is_empty(),
            };
            assert!(matches, "{kind:?} {of} {path}: {found:?}");
        }
    }
}
