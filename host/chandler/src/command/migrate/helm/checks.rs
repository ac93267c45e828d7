//! What keeps a release from being migrated.

use chandler_rollout::{Adoptee, FieldChange};
use serde_json::{Map, Value};

use super::{Helm, plan::Plan};
use crate::{
    CommandError,
    migrate::restarts::restarts,
    view::{difference, invocation::quoted, text::one_line},
};

/// The objects and fields that a message lists.
const LISTED: usize = 20;

/// Why a release is not migrated as it is, or `None` if it can be. The reason that no option allows comes first.
pub(super) fn refusal(arguments: &Helm, plan: &Plan) -> Option<CommandError> {
    let release = one_line(&plan.release);
    let refused = |message: String, lines: &[String]| {
        let shown = lines.iter().take(LISTED).cloned();
        let more = lines.len().checked_sub(LISTED + 1).map(|more| format!("and {} more", more + 1));
        let error = CommandError::refused(format!("{message}; nothing was changed"));
        shown.chain(more).fold(error, CommandError::cause)
    };
    let compared = &plan.compared;
    let name = &plan.release.rsplit('/').next().unwrap_or_default();
    if !compared.left.is_empty() {
        let message = format!("objects of release {release} are not rendered from its chart");
        return Some(refused(message, &compared.left).hint(format!(
            "they would be left without an owner: name the chart that the release was installed from, `--image {}=REGISTRY/PATH:VERSION`, or \
             upgrade the release with Helm to a chart that renders them",
            quoted(name)
        )));
    }
    if !compared.strangers.is_empty() {
        let message = format!("objects of the chart do not belong to release {release}");
        return Some(refused(message, &compared.strangers).hint(
            "an object belongs to a release by the annotations meta.helm.sh/release-name and release-namespace that Helm writes to it",
        ));
    }
    if !compared.unmarked.is_empty() && !arguments.adopt_unmarked {
        let message = format!("objects of the chart do not say that they belong to release {release}");
        return Some(refused(message, &compared.unmarked).hint(
            "Helm marks neither CRDs of crds/ nor hooks: check that the objects are from this chart, and pass --adopt-unmarked; or delete Jobs and \
             Pods of hooks first",
        ));
    }
    if !compared.new.is_empty() && !arguments.allow_new {
        let message = format!("the chart of release {release} has objects that do not exist");
        return Some(
            refused(message, &compared.new).hint("check what they are and do, and pass --allow-new to create them"),
        );
    }
    if let Some(refusal) = compared.preview.refusals.first() {
        let message = format!("the rollout of {release} would be refused");
        let error = refused(message, &[difference::refusal(refusal)]);
        return Some(if plan.deployment.spec.service_account.is_some() {
            error.hint(
                "if the ServiceAccount lacks permissions: grant them (docs/permissions.md), name another one with --service-account, or install with \
                 the permissions of the controller: --no-service-account --install-with-controller-rights",
            )
        } else {
            error
        });
    }
    let restarts = restarts(&compared.adoptees, &compared.preview.changes);
    if !restarts.is_empty() && !arguments.allow_restart {
        let message = format!("adopting the objects of {release} would restart Pods");
        return Some(
            refused(message, &restarts).hint(CHANGES).hint("--allow-changes --allow-restart migrates it anyway"),
        );
    }
    let changed: Vec<String> = compared.adoptees.iter().filter_map(changed).collect();
    if !changed.is_empty() && !arguments.allow_changes {
        let message = format!("adopting the objects of {release} would change them");
        return Some(refused(message, &changed).hint(CHANGES).hint("--allow-changes migrates it anyway"));
    }
    None
}

/// What helps with differences.
const CHANGES: &str = "a release that was changed by hand, or whose chart depends on the revision or the cluster, renders other objects: upgrade it with Helm \
                       and the same chart and values first, and compare again";

/// The fields of an object that would change, on one line, without those labels and annotations that only say who owns it.
fn changed(adoptee: &Adoptee) -> Option<String> {
    let object = one_line(&adoptee.object.to_string());
    if let Some(note) = &adoptee.note {
        return Some(format!("{object} could not be compared: {}", one_line(note)));
    }
    let paths: Vec<String> =
        adoptee.fields.iter().filter(|field| is_content(field)).map(|it| one_line(&it.path)).collect();
    (!paths.is_empty()).then(|| format!("{object}: {}", paths.join(", ")))
}

/// What the labels and annotations of owners, and requests to the host for generated values and certificates, begin with.
const OF_OWNERS: [&str; 7] = [
    "applyset.kubernetes.io/",
    "certificates.chandler.dev/",
    "chandler.dev/",
    "core.rukpak.io/owner-",
    "meta.helm.sh/release-",
    "app.kubernetes.io/managed-by",
    "secrets.chandler.dev/",
];

/// Whether a field is more than a label or an annotation of an owner.
fn is_content(field: &FieldChange) -> bool {
    let is_of_owner = |key: &str| OF_OWNERS.iter().any(|begin| key.starts_with(begin));
    let rest =
        ["metadata.labels", "metadata.annotations"].iter().find_map(|metadata| field.path.strip_prefix(metadata));
    let Some(rest) = rest else { return true };
    // The whole map comes or goes.
    if rest.is_empty() {
        let maps = field.before.iter().chain(&field.after).filter_map(Value::as_object);
        return !maps.flat_map(Map::keys).all(|key| is_of_owner(key));
    }
    !is_of_owner(rest.trim_start_matches(['.', '[', '"']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labels_and_annotations_of_owners_may_change() {
        let map = |key: &str| Some(serde_json::json!({key: "x"}));
        for (path, before, counts) in [
            ("metadata.labels[\"applyset.kubernetes.io/part-of\"]", None, false),
            ("metadata.labels[\"core.rukpak.io/owner-name\"]", None, false),
            ("metadata.annotations[\"meta.helm.sh/release-name\"]", None, false),
            ("metadata.annotations", map("meta.helm.sh/release-name"), false),
            ("metadata.annotations[\"secrets.chandler.dev/generate\"]", None, false),
            ("metadata.annotations[\"certificates.chandler.dev/inject-ca\"]", None, false),
            ("metadata.annotations", map("nginx.ingress.kubernetes.io/auth-url"), true),
            ("metadata.annotations[\"nginx.ingress.kubernetes.io/auth-url\"]", None, true),
            ("metadata.labels.app", None, true),
            ("metadata.finalizers", None, true),
            ("spec.template.metadata.labels[\"chandler.dev/x\"]", None, true),
            ("rules[0].verbs", None, true),
            ("data", None, true),
        ] {
            let field = FieldChange { path: path.to_owned(), before, after: None };
            assert_eq!(is_content(&field), counts, "{path}");
        }
    }
}
