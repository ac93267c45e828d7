//! Changes that would restart what runs.

use chandler_core::ObjectKey;
use chandler_rollout::{Adoptee, Change, ChangeKind};

/// The kinds whose controller replaces the Pods when their template changes.
const WORKLOADS: [&str; 3] = ["Deployment", "StatefulSet", "DaemonSet"];

/// One line for each existing workload whose Pods an adoption would replace, or that could not be compared.
pub fn restarts(adoptees: &[Adoptee], changes: &[Change]) -> Vec<String> {
    let recreated = changes.iter().filter(|change| change.kind == ChangeKind::Recreate && is_workload(&change.object));
    let recreated = recreated.map(|change| format!("{} would be deleted and created again", change.object));
    let adopted = adoptees.iter().filter(|adoptee| is_workload(&adoptee.object)).filter_map(restart);
    recreated.chain(adopted).collect()
}

fn is_workload(object: &ObjectKey) -> bool {
    object.group == "apps" && WORKLOADS.contains(&object.kind.as_str())
}

fn restart(adoptee: &Adoptee) -> Option<String> {
    let object = &adoptee.object;
    if let Some(note) = &adoptee.note {
        return Some(format!("{object} could not be compared: {note}"));
    }
    let paths = adoptee.fields.iter().map(|field| field.path.as_str());
    let template: Vec<&str> = paths.filter(|path| path.starts_with("spec.template")).collect();
    (!template.is_empty()).then(|| format!("{object} would restart: {} would change", template.join(", ")))
}

#[cfg(test)]
mod tests {
    use chandler_rollout::{ExistingOwner, FieldChange};

    use super::*;

    fn object(kind: &str) -> ObjectKey {
        ObjectKey {
            group: "apps".to_owned(),
            version: "v1".to_owned(),
            kind: kind.to_owned(),
            namespace: Some("n".to_owned()),
            name: "x".to_owned(),
        }
    }

    #[test]
    fn a_change_of_a_pod_template_restarts_a_workload() {
        let image = "spec.template.spec.containers[name=a].image";
        for (kind, path, note, expected) in [
            ("Deployment", image, None, Some("would restart")),
            ("DaemonSet", "spec.template.metadata.labels.a", None, Some("would restart")),
            ("Deployment", "metadata.labels.a", None, None),
            ("Deployment", "spec.replicas", None, None),
            ("Deployment", "metadata.labels.a", Some("why"), Some("could not be compared: why")),
            ("ControllerRevision", image, None, None),
        ] {
            let adoptee = Adoptee {
                object: object(kind),
                existing_owner: ExistingOwner::Unknown,
                fields: vec![FieldChange { path: path.to_owned(), before: None, after: None }],
                note: note.map(str::to_owned),
                uid: "1".to_owned(),
            };
            let found = restarts(&[adoptee], &[]);
            let matches = match expected {
                Some(part) => found.len() == 1 && found[0].contains(part),
                None => found.is_empty(),
            };
            assert!(matches, "{kind} {path}: {found:?}");
        }
    }

    #[test]
    fn a_workload_that_is_recreated_restarts() {
        let change = |kind, of| Change { kind, object: object(of), fields: Vec::new(), note: None };
        for (change, expected) in [
            (change(ChangeKind::Recreate, "StatefulSet"), 1),
            (change(ChangeKind::Create, "StatefulSet"), 0),
            (change(ChangeKind::Recreate, "ControllerRevision"), 0),
        ] {
            assert_eq!(restarts(&[], std::slice::from_ref(&change)).len(), expected, "{change:?}");
        }
    }
}
