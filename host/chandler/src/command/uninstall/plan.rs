//! What to do next with the objects of Chandler: pure decisions, taken again after each look at the cluster. So a second run continues where
//! the first one stopped.

use std::collections::BTreeSet;

use chandler_api::{
    CrdDeletion, Deletion, DeletionPolicy, OwnKind, Reason,
    names::{CLEANUP_UNPACK_CACHE_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, IN_USE_FINALIZER, TEARDOWN_FINALIZER},
};

use crate::read::uninstallation::{Decision, Held};

/// The finalizer of a deletion that leaves dependents alone (`metav1.FinalizerOrphanDependents`). The garbage collector removes it.
const ORPHAN: &str = "orphan";
/// The finalizers that only the controller removes.
const OURS: [&str; 4] =
    [TEARDOWN_FINALIZER, IN_USE_FINALIZER, DELETE_CACHED_BUNDLE_FINALIZER, CLEANUP_UNPACK_CACHE_FINALIZER];
/// Why the objects of a BundleDeployment cannot be orphaned one by one. `--cascade=orphan` needs no permission.
const WITHOUT_PERMISSION: [Reason; 4] =
    [Reason::ServiceAccountNotFound, Reason::PermissionsMissing, Reason::Forbidden, Reason::RecordOutdated];
/// What installs others comes first: it would install them again.
const ORDER: [OwnKind; 9] = [
    OwnKind::PlatformOperator,
    OwnKind::Resolution,
    OwnKind::BundleDeployment,
    OwnKind::Catalog,
    OwnKind::ProvisionerClass,
    OwnKind::ChangeApproval,
    OwnKind::PlatformPolicy,
    OwnKind::Receiver,
    // Last, so that it still sends what happens to the others.
    OwnKind::Alert,
];

/// What happens to the installed software, and who deletes the objects of Chandler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// The software stays; the controller orphans it.
    Keep,
    /// The controller deletes the software. CRDs that are in use follow this setting, or else each BundleDeployment's.
    Delete(Option<CrdDeletion>),
    /// The software stays. No controller runs: the garbage collector orphans it, and this command removes the finalizers.
    KeepWithoutController,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action<'a> {
    /// Set `spec.deletion` of a BundleDeployment.
    SetDeletion(&'a Held),
    /// Delete an object. A BundleDeployment gets `spec.deletion` first.
    Delete(&'a Held),
    /// Delete an object, and let the garbage collector orphan its dependents.
    Orphan(&'a Held),
    /// Remove these finalizers.
    Free(&'a Held, Vec<String>),
    /// Delete a decision.
    DeleteDecision(&'a Decision),
}

/// What is done now, and what is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Step<'a> {
    /// The requests.
    pub(super) actions: Vec<Action<'a>>,
    /// The objects that have to be gone before the next step.
    pub(super) waiting: Vec<&'a Held>,
}

/// What was requested before, by UID: it is not requested again.
#[derive(Clone, Debug, Default)]
pub(super) struct Asked {
    deletion: BTreeSet<String>,
    orphaned: BTreeSet<String>,
}

impl Asked {
    /// Notes a request that the API server accepted.
    pub(super) fn note(&mut self, action: &Action<'_>) {
        match action {
            Action::SetDeletion(held) => self.deletion.insert(held.uid.clone()),
            Action::Orphan(held) => self.orphaned.insert(held.uid.clone()),
            Action::Delete(_) | Action::Free(..) | Action::DeleteDecision(_) => false,
        };
    }
}

/// The next step; `None` if no object of Chandler is left.
pub(super) fn next<'a>(held: &'a [Held], decisions: &'a [Decision], mode: Mode, asked: &Asked) -> Option<Step<'a>> {
    if mode == Mode::KeepWithoutController {
        return without_controller(held, asked);
    }
    let set: Vec<Action<'_>> =
        held.iter().filter(|held| sets_deletion(held, mode, asked)).map(Action::SetDeletion).collect();
    if !set.is_empty() {
        return Some(Step { actions: set, waiting: Vec::new() });
    }
    for kind in ORDER {
        if kind == OwnKind::BundleDeployment && !decisions.is_empty() {
            return Some(Step { actions: decisions.iter().map(Action::DeleteDecision).collect(), waiting: Vec::new() });
        }
        let of_kind: Vec<&Held> = held.iter().filter(|held| held.kind == kind).collect();
        if !of_kind.is_empty() {
            let waiting = roots(&of_kind);
            let actions = waiting.iter().filter_map(|held| deletion(held, mode, asked)).collect();
            return Some(Step { actions, waiting });
        }
    }
    None
}

/// Whether `spec.deletion` of a BundleDeployment has to change before anything is deleted: the controller deletes the members of a set with
/// the set. A deletion that the user requested before keeps its settings, unless this command has one for CRDs: custom resources may block it.
fn sets_deletion(held: &Held, mode: Mode, asked: &Asked) -> bool {
    let is_decided = held.is_deleting && !matches!(mode, Mode::Delete(Some(_)));
    let is_open = held.kind == OwnKind::BundleDeployment && !is_decided && !asked.deletion.contains(&held.uid);
    is_open && wanted(held, mode) != held.deletion
}

/// `spec.deletion` of a BundleDeployment that is deleted. One whose user keeps its objects keeps them.
pub(super) fn wanted(held: &Held, mode: Mode) -> Deletion {
    let mut deletion = held.deletion;
    match mode {
        Mode::Keep | Mode::KeepWithoutController => deletion.policy = Some(DeletionPolicy::Orphan),
        Mode::Delete(Some(crds)) if deletion.policy != Some(DeletionPolicy::Orphan) => deletion.crds = Some(crds),
        Mode::Delete(_) => {}
    }
    deletion
}

/// The objects that no other one of the list owns: a set deletes its members itself, in their order. Owner references are what users
/// write, so a circle of them is possible; then all are roots.
fn roots<'a>(of_kind: &[&'a Held]) -> Vec<&'a Held> {
    let uids: BTreeSet<&str> = of_kind.iter().map(|held| held.uid.as_str()).collect();
    let is_owned = |held: &Held| held.owners.iter().any(|owner| *owner != held.uid && uids.contains(owner.as_str()));
    let roots: Vec<&Held> = of_kind.iter().copied().filter(|held| !is_owned(held)).collect();
    if roots.is_empty() { of_kind.to_vec() } else { roots }
}

fn deletion<'a>(held: &'a Held, mode: Mode, asked: &Asked) -> Option<Action<'a>> {
    let keeps_what_it_installed = matches!(held.kind, OwnKind::PlatformOperator | OwnKind::Resolution);
    match mode {
        _ if !held.is_deleting && mode == Mode::Keep && keeps_what_it_installed => Some(Action::Orphan(held)),
        _ if !held.is_deleting => Some(Action::Delete(held)),
        Mode::Keep if !asked.orphaned.contains(&held.uid) && lacks_permission(held) => Some(Action::Orphan(held)),
        _ => None,
    }
}

/// Whether only a controller, or `--without-controller`, lets its deletion end.
pub(super) fn is_finalized(held: &Held) -> bool {
    held.finalizers.iter().any(|name| OURS.contains(&name.as_str()))
}

fn lacks_permission(held: &Held) -> bool {
    let reason = held.reason.as_deref().and_then(Reason::from_name);
    let is_stuck = reason.is_some_and(|reason| WITHOUT_PERMISSION.contains(&reason));
    held.kind == OwnKind::BundleDeployment && is_stuck && !held.has_finalizer(ORPHAN)
}

/// The garbage collector first removes the owner references of the installed objects: it would delete them with their owner.
fn without_controller<'a>(held: &'a [Held], asked: &Asked) -> Option<Step<'a>> {
    let action = |held: &'a Held| {
        if !asked.orphaned.contains(&held.uid) {
            return Some(Action::Orphan(held));
        }
        let ours: Vec<String> = held.finalizers.iter().filter(|it| OURS.contains(&it.as_str())).cloned().collect();
        (!held.has_finalizer(ORPHAN) && !ours.is_empty()).then_some(Action::Free(held, ours))
    };
    let actions = held.iter().filter_map(action).collect();
    (!held.is_empty()).then(|| Step { actions, waiting: held.iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(kind: OwnKind, name: &str) -> Held {
        Held {
            kind,
            name: name.into(),
            uid: format!("uid-{name}"),
            is_deleting: false,
            finalizers: vec![TEARDOWN_FINALIZER.into()],
            owners: Vec::new(),
            deletion: Deletion::default(),
            reason: None,
            message: None,
            object: serde_json::Value::Null,
        }
    }

    fn orphaning(mut held: Held) -> Held {
        held.deletion.policy = Some(DeletionPolicy::Orphan);
        held
    }

    fn deleting(mut held: Held) -> Held {
        held.is_deleting = true;
        held
    }

    /// The actions and the names that are waited for, as text.
    fn text(held: &[Held], decisions: &[Decision], mode: Mode, asked: &Asked) -> String {
        let Some(step) = next(held, decisions, mode, asked) else { return "done".to_owned() };
        let actions = step.actions.iter().map(|action| match action {
            Action::SetDeletion(held) => format!("set {}", held.name),
            Action::Delete(held) => format!("delete {}", held.name),
            Action::Orphan(held) => format!("orphan {}", held.name),
            Action::Free(held, names) => format!("free {} of {}", held.name, names.join("+")),
            Action::DeleteDecision(decision) => format!("undecide {}", decision.name),
        });
        let waiting: Vec<&str> = step.waiting.iter().map(|held| held.name.as_str()).collect();
        format!("{} | {}", actions.collect::<Vec<_>>().join(", "), waiting.join(", "))
    }

    #[test]
    fn every_kind_has_a_place() {
        assert!(OwnKind::ALL.iter().all(|kind| ORDER.contains(kind)));
    }

    #[test]
    fn what_installs_others_goes_first_and_sets_before_their_members() {
        let mut member = held(OwnKind::BundleDeployment, "member");
        member.owners = vec!["uid-set".into()];
        let decision =
            Decision { namespace: "chandler-system".into(), name: "decided".into(), uid: "uid-decided".into() };
        let mut all = vec![
            held(OwnKind::PlatformPolicy, "policy"),
            held(OwnKind::ProvisionerClass, "class"),
            member,
            held(OwnKind::BundleDeployment, "set"),
            held(OwnKind::Resolution, "shop"),
            held(OwnKind::PlatformOperator, "operator"),
        ];
        let (asked, mode) = (Asked::default(), Mode::Delete(None));
        let mut seen = Vec::new();
        let mut decisions = vec![decision];
        loop {
            let line = text(&all, &decisions, mode, &asked);
            let Some(step) = next(&all, &decisions, mode, &asked) else { break };
            seen.push(line);
            let gone: Vec<String> = step.waiting.iter().map(|held| held.uid.clone()).collect();
            if gone.is_empty() {
                decisions.clear();
            }
            all.retain(|held| !gone.contains(&held.uid));
        }
        insta::assert_snapshot!(seen.join("\n"), @r"
        delete operator | operator
        delete shop | shop
        undecide decided | 
        delete set | set
        delete member | member
        delete class | class
        delete policy | policy
        ");
    }

    #[test]
    fn kept_software_is_orphaned_before_anything_is_deleted() {
        let all = [held(OwnKind::Resolution, "shop"), held(OwnKind::BundleDeployment, "a")];
        let mut asked = Asked::default();
        assert_eq!(text(&all, &[], Mode::Keep, &asked), "set a | ");
        asked.note(&Action::SetDeletion(&all[1]));
        assert_eq!(
            text(&all, &[], Mode::Keep, &asked),
            "orphan shop | shop",
            "a set may revert it: it is not set twice"
        );
        let only = [orphaning(held(OwnKind::BundleDeployment, "a"))];
        assert_eq!(text(&only, &[], Mode::Keep, &Asked::default()), "delete a | a");
        let being_deleted = [deleting(held(OwnKind::BundleDeployment, "a"))];
        assert_eq!(text(&being_deleted, &[], Mode::Keep, &Asked::default()), " | a", "its user decided");
    }

    #[test]
    fn a_missing_permission_of_an_account_does_not_hold_what_is_kept() {
        let mut stuck = deleting(orphaning(held(OwnKind::BundleDeployment, "a")));
        stuck.reason = Some("PermissionsMissing".into());
        let all = [stuck.clone()];
        let mut asked = Asked::default();
        assert_eq!(text(&all, &[], Mode::Keep, &asked), "orphan a | a");
        assert_eq!(text(&all, &[], Mode::Delete(None), &asked), " | a", "the objects would stay");
        asked.note(&Action::Orphan(&all[0]));
        assert_eq!(text(&all, &[], Mode::Keep, &asked), " | a");
        stuck.finalizers.push(ORPHAN.into());
        assert_eq!(text(&[stuck], &[], Mode::Keep, &Asked::default()), " | a");
    }

    #[test]
    fn the_setting_for_crds_is_written_before_anything_is_deleted_and_kept_software_stays_so() {
        let all = [held(OwnKind::BundleDeployment, "a"), orphaning(held(OwnKind::BundleDeployment, "b"))];
        let mode = Mode::Delete(Some(CrdDeletion::Delete));
        assert_eq!(text(&all, &[], mode, &Asked::default()), "set a | ");
        assert_eq!(text(&all[1..], &[], mode, &Asked::default()), "delete b | b");
        let blocked = [deleting(held(OwnKind::BundleDeployment, "a"))];
        assert_eq!(text(&blocked, &[], mode, &Asked::default()), "set a | ", "custom resources may block it");
        assert_eq!(text(&blocked, &[], Mode::Delete(None), &Asked::default()), " | a");
    }

    #[test]
    fn a_circle_of_owners_holds_nothing() {
        let mut all = [held(OwnKind::BundleDeployment, "a"), held(OwnKind::BundleDeployment, "b")];
        all[0].owners = vec!["uid-b".into()];
        all[1].owners = vec!["uid-a".into()];
        assert_eq!(text(&all, &[], Mode::Delete(None), &Asked::default()), "delete a, delete b | a, b");
    }

    #[test]
    fn without_a_controller_finalizers_go_after_the_garbage_collector_has_orphaned_the_objects() {
        let mode = Mode::KeepWithoutController;
        let mut asked = Asked::default();
        let mut object = deleting(held(OwnKind::BundleDeployment, "a"));
        object.finalizers.push("example.com/other".into());
        assert_eq!(
            text(std::slice::from_ref(&object), &[], mode, &asked),
            "orphan a | a",
            "also if it is being deleted"
        );
        asked.note(&Action::Orphan(&object));
        object.finalizers.push(ORPHAN.into());
        assert_eq!(text(std::slice::from_ref(&object), &[], mode, &asked), " | a");
        object.finalizers.retain(|it| it != ORPHAN);
        assert_eq!(text(std::slice::from_ref(&object), &[], mode, &asked), "free a of chandler.dev/teardown | a");
        object.finalizers.remove(0);
        assert_eq!(text(std::slice::from_ref(&object), &[], mode, &asked), " | a", "other software's finalizer stays");
        assert_eq!(text(&[], &[], mode, &asked), "done");
    }
}
