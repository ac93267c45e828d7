//! When nothing is uninstalled: pure decisions on what was found, before anything is written.

use std::collections::BTreeSet;

use chandler_api::{DeletionPolicy, OwnKind};
use chandler_core::ObjectKey;

use super::plan::{self, Mode};
use crate::{
    CommandError,
    read::{
        installation_evidence::{InstallationEvidence, NamespaceState},
        uninstallation::{Held, Part},
    },
    view::{
        text::one_line,
        uninstallation::{OwnObject, Uninstallation},
    },
};

/// Namespaces that are never deleted: every cluster has them.
fn is_of_cluster(namespace: &str) -> bool {
    namespace == "default" || namespace.starts_with("kube-")
}

/// Refuses to delete a namespace that is not Chandler's, and to uninstall the installation of another system namespace.
pub(super) fn check_place(
    evidence: &InstallationEvidence,
    namespace: &str,
    lease_namespace: &str,
    keeps_namespace: bool,
) -> Result<(), CommandError> {
    if is_of_cluster(namespace) && !keeps_namespace {
        return Err(CommandError::refused(format!(
            "the namespace {namespace} belongs to the cluster, and is not deleted"
        ))
        .hint("`--keep-namespace` keeps it with everything that is not Chandler's"));
    }
    let other = evidence.shared.as_ref().filter(|lease| lease.holder != namespace);
    if evidence.namespace == NamespaceState::Active && !evidence.is_installed {
        let error = CommandError::refused(format!("Chandler is not installed in namespace {namespace}"));
        return Err(match other {
            Some(lease) => error.hint(elsewhere(&lease.holder)),
            None => error.hint("`--system-namespace` names the namespace of the controller"),
        });
    }
    match other {
        Some(lease) => Err(CommandError::refused(format!(
            "another installation uses the CRDs of this cluster: namespace {} holds the Lease of the cluster",
            one_line(&lease.holder)
        ))
        .hint(elsewhere(&lease.holder))
        .hint(format!(
            "if it is gone, delete its Lease: `kubectl delete lease --namespace {lease_namespace} chandler-controller`"
        ))),
        None => Ok(()),
    }
}

/// Whether a controller has to work: for finalizers, and for objects that stay, since the garbage collector deletes them with their owner.
pub(super) fn needs_controller(held: &[Held], mode: Mode) -> bool {
    let keeps = |held: &Held| {
        let stays = plan::wanted(held, mode).policy == Some(DeletionPolicy::Orphan);
        held.kind == OwnKind::BundleDeployment && stays
    };
    held.iter().any(|held| plan::is_finalized(held) || keeps(held))
}

/// Refuses `--without-controller` beside a controller that works, also if only the Lease of the cluster shows it.
pub(super) fn check_no_controller(evidence: &InstallationEvidence, lease_namespace: &str) -> Result<(), CommandError> {
    match evidence.shared.as_ref().filter(|lease| lease.is_live) {
        Some(lease) => Err(CommandError::refused(format!(
            "a controller works here: namespace {} holds the Lease {lease_namespace}/chandler-controller",
            one_line(&lease.holder)
        ))
        .hint("if it was just stopped, run this command again in a minute: its Lease expires")),
        None => Ok(()),
    }
}

/// The objects of bundles that stay, and are in this namespace.
fn kept_in<'a>(all: &'a Uninstallation, namespace: &str) -> Vec<&'a ObjectKey> {
    let previews = all.objects.iter().filter_map(|object| Some((object, object.preview.as_ref()?)));
    let kept =
        previews.flat_map(|(object, preview)| preview.orphaned.iter().filter(|key| !is_content(key, &object.key.name)));
    kept.filter(|key| key.namespace.as_deref() == Some(namespace)).collect()
}

/// Whether an object is a ConfigMap with files of a bundle, which `chandler install DIR` writes: nothing needs it without the BundleDeployment.
/// Its name is the BundleDeployment's, 12 digits of a digest, and a number.
fn is_content(key: &ObjectKey, deployment: &str) -> bool {
    let rest = key.name.strip_prefix(deployment).and_then(|rest| rest.strip_prefix('-'));
    let parts = rest.and_then(|rest| rest.split_once('-'));
    key.kind == "ConfigMap"
        && parts.is_some_and(|(digest, number)| {
            let is_digest = digest.len() == 12 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_digest && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Refuses to delete a namespace with objects of bundles that stay.
pub(super) fn check_kept(all: &Uninstallation, namespace: &str) -> Result<(), CommandError> {
    let kept = kept_in(all, namespace);
    let is_unknown = |object: &OwnObject| object.key.kind == "BundleDeployment" && object.preview.is_none();
    let message = if !kept.is_empty() {
        format!("objects of bundles that stay are in the namespace {namespace}, which is deleted: {}", names(&kept))
    } else if let Some(object) = all.objects.iter().find(|object| is_unknown(object)) {
        format!("it is not known which objects of {} are in the namespace {namespace}, which is deleted", object.key)
    } else {
        return Ok(());
    };
    Err(CommandError::refused(one_line(&message)).hint("`--keep-namespace` keeps the namespace, and everything in it"))
}

/// What the user agreed to: names and, where they are known, UIDs.
pub(super) type Agreed = BTreeSet<(String, String)>;

/// What the preview deletes.
pub(super) fn agreed(all: &Uninstallation, held: &[Held], parts: &[Part]) -> Agreed {
    let previews = all.objects.iter().filter_map(|object| object.preview.as_ref());
    let deleted = previews.flat_map(|preview| &preview.deleted);
    let listed = deleted.chain(&all.decisions).chain(&all.installation).chain(&all.with_namespace);
    let held = held.iter().map(|held| (format!("{} {}", held.kind.kind(), held.name), held.uid.clone()));
    let parts = parts.iter().map(|part| (part.key.to_string(), part.uid.clone()));
    listed.map(|key| (key.to_string(), String::new())).chain(held).chain(parts).collect()
}

/// Refuses to delete what the user has not seen.
pub(super) fn check_nothing_new(before: &Agreed, after: &Agreed) -> Result<(), CommandError> {
    let added: BTreeSet<&str> = after.difference(before).map(|(name, _)| name.as_str()).collect();
    let Some(first) = added.first() else { return Ok(()) };
    let more = added.len() - 1;
    let and_more = if more == 0 { String::new() } else { format!(" and {more} more") };
    Err(CommandError::refused(format!("new since the preview: {}{and_more}; nothing was deleted", one_line(first)))
        .hint("run the command again: its preview lists everything"))
}

/// Leaves each object in one list: what a bundle keeps or deletes is listed below it.
pub(super) fn list_once(all: &mut Uninstallation) {
    let previews = all.objects.iter().filter_map(|object| object.preview.as_ref());
    let of_bundles: Vec<ObjectKey> =
        previews.flat_map(|preview| preview.orphaned.iter().chain(&preview.deleted)).cloned().collect();
    let installation = all.installation.clone();
    let decisions = all.decisions.clone();
    let is_listed = |key: &ObjectKey| {
        [&of_bundles, &installation, &decisions].into_iter().flatten().any(|other| is_same(other, key))
    };
    all.with_namespace.retain(|key| !is_listed(key));
    all.kept.retain(|key| !is_listed(key));
}

pub(super) fn is_same(a: &ObjectKey, b: &ObjectKey) -> bool {
    (&a.group, &a.kind, &a.namespace, &a.name) == (&b.group, &b.kind, &b.namespace, &b.name)
}

/// The first of these objects, and how many more there are.
pub(super) fn names(keys: &[&ObjectKey]) -> String {
    let shown: Vec<String> = keys.iter().take(5).map(ToString::to_string).collect();
    let more = keys.len().saturating_sub(shown.len());
    let and_more = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{}{and_more}", shown.join(", "))
}

fn elsewhere(holder: &str) -> String {
    let holder = one_line(holder);
    format!("the installation in namespace {holder} holds the Lease of the cluster: `--system-namespace {holder}`")
}

#[cfg(test)]
mod tests {
    use chandler_rollout::DeletionPreview;

    use super::*;
    use crate::{read::installation_evidence::SharedLease, view::failure::FailureKind};

    fn evidence(is_installed: bool, shared: Option<(&str, bool)>) -> InstallationEvidence {
        let shared = shared.map(|(holder, is_live)| SharedLease { holder: holder.into(), is_live });
        InstallationEvidence { namespace: NamespaceState::Active, is_installed, shared }
    }

    fn text<T: std::fmt::Debug>(done: Result<T, CommandError>) -> String {
        let error = done.unwrap_err();
        assert_eq!(error.kind(), FailureKind::Refused);
        format!("{error:?}")
    }

    #[test]
    fn a_namespace_in_which_chandler_is_not_installed_is_not_touched() {
        let refused = text(check_place(&evidence(false, None), "shop", "kube-system", false));
        assert!(refused.contains("Chandler is not installed in namespace shop"), "{refused}");
        let refused =
            text(check_place(&evidence(false, Some(("chandler-system", false))), "shop", "kube-system", true));
        assert!(refused.contains("--system-namespace chandler-system"), "{refused}");
        check_place(&evidence(true, None), "shop", "kube-system", false).unwrap();
        check_place(&evidence(true, Some(("shop", true))), "shop", "kube-system", false).unwrap();
        for namespace in [NamespaceState::Absent, NamespaceState::Terminating] {
            check_place(&InstallationEvidence { namespace, ..evidence(false, None) }, "shop", "kube-system", false)
                .unwrap();
        }
    }

    #[test]
    fn another_installation_and_a_live_lease_of_the_cluster_count() {
        for (is_installed, is_live) in [(true, true), (true, false)] {
            let refused =
                text(check_place(&evidence(is_installed, Some(("other", is_live))), "shop", "kube-system", false));
            assert!(refused.contains("--system-namespace other"), "{refused}");
        }
        let gone = InstallationEvidence { namespace: NamespaceState::Absent, ..evidence(false, Some(("other", true))) };
        assert!(text(check_place(&gone, "typo", "kube-system", false)).contains("--system-namespace other"));
        let refused = text(check_no_controller(&evidence(true, Some(("shop", true))), "kube-system"));
        assert!(refused.contains("a controller works here: namespace shop"), "{refused}");
        check_no_controller(&evidence(true, Some(("shop", false))), "kube-system").unwrap();
        check_no_controller(&evidence(true, None), "kube-system").unwrap();
    }

    fn key(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectKey {
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        ObjectKey { group: group.into(), version: "v1".into(), kind: kind.into(), namespace, name: name.into() }
    }

    fn bundle(preview: Option<DeletionPreview>) -> OwnObject {
        OwnObject { key: key("core.rukpak.io", "BundleDeployment", "", "harbour"), preview }
    }

    #[test]
    fn the_namespace_stays_with_the_objects_that_bundles_keep_in_it() {
        let map = key("", "ConfigMap", "chandler-system", "tides");
        let preview = DeletionPreview { orphaned: vec![map.clone()], ..DeletionPreview::default() };
        let mut all = Uninstallation { objects: vec![bundle(Some(preview))], ..Uninstallation::default() };
        let refused = text(check_kept(&all, "chandler-system"));
        assert!(refused.contains("ConfigMap chandler-system/tides"), "{refused}");
        assert!(refused.contains("--keep-namespace"), "{refused}");
        check_kept(&all, "other").unwrap();
        let content = DeletionPreview {
            orphaned: vec![key("", "ConfigMap", "chandler-system", "harbour-9ed957fbcb71-0")],
            ..DeletionPreview::default()
        };
        check_kept(
            &Uninstallation { objects: vec![bundle(Some(content))], ..Uninstallation::default() },
            "chandler-system",
        )
        .unwrap();
        all.with_namespace = vec![map.clone(), key("", "Secret", "chandler-system", "a")];
        all.kept = vec![map];
        list_once(&mut all);
        assert_eq!((all.with_namespace.len(), all.kept.len()), (1, 0));
        all.objects = vec![bundle(None)];
        assert!(text(check_kept(&all, "chandler-system")).contains("it is not known"));
    }

    #[test]
    fn what_appears_after_the_preview_is_not_deleted() {
        let entry = |name: &str, uid: &str| (name.to_owned(), uid.to_owned());
        let before = Agreed::from([entry("Catalog a", "1"), entry("Secret shop/a", "")]);
        check_nothing_new(&before, &before).unwrap();
        check_nothing_new(&before, &Agreed::from([entry("Catalog a", "1")])).unwrap();
        for (name, uid) in [("Catalog b", "2"), ("Catalog a", "2"), ("Secret shop/b", "")] {
            let mut after = before.clone();
            after.insert(entry(name, uid));
            let refused = text(check_nothing_new(&before, &after));
            assert!(refused.contains(&format!("new since the preview: {name}")), "{refused}");
        }
    }

    #[test]
    fn objects_that_stay_need_a_controller_also_without_a_finalizer() {
        let held = [Held {
            kind: OwnKind::BundleDeployment,
            name: "harbour".into(),
            uid: "1".into(),
            is_deleting: false,
            finalizers: Vec::new(),
            owners: Vec::new(),
            deletion: chandler_api::Deletion::default(),
            reason: None,
            message: None,
            object: serde_json::Value::Null,
        }];
        assert!(needs_controller(&held, Mode::Keep));
        assert!(!needs_controller(&held, Mode::Delete(None)));
    }

    #[test]
    fn the_namespaces_of_the_cluster_are_never_deleted() {
        for namespace in ["default", "kube-system", "kube-node-lease"] {
            let refused = text(check_place(&evidence(true, None), namespace, "kube-system", false));
            assert!(refused.contains("--keep-namespace"), "{refused}");
            check_place(&evidence(true, None), namespace, "kube-system", true).unwrap();
        }
    }
}
