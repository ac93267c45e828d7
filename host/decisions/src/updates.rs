//! Whether an installed BundleDeployment keeps the component that rendered it, while its class has a newer one.
//!
//! A class with the policy `Manual` changes no release that is installed: what its author does not change is rendered with the component and
//! the configuration of the class that rendered it before. Both are in the record, so that nothing in the cluster can forge them.
//! `WhenUnchanged` differs only where both components render the same release, and `Staged` where it is the turn of a BundleDeployment
//! ([`staged`](crate::staged)).

use chandler_api::{BundleWarning, ChangeCause, Outcome, ProvisionerChange, ProvisionerInUse, Revision, UpdatePolicy};
use chandler_core::text::printable;

use super::{
    config::Config,
    revisions::{self, Candidate},
};

/// The code of the warning about an update that cannot be rendered.
const UPDATE_FAILED: &str = "ProvisionerUpdateFailed";
/// The code of the warning about an update whose component is quarantined.
const UPDATE_WAITS: &str = "ProvisionerUpdateWaits";
/// The code of the warning about a component that is needed and unavailable.
const UNAVAILABLE: &str = "ProvisionerUnavailable";
/// Bytes of the message of a warning.
const MESSAGE_BYTES: usize = 1024;

/// What a release is rendered from.
pub struct Inputs<'a> {
    /// The provisioner, as its class has it now.
    pub provisioner: &'a ProvisionerInUse,
    /// The digest of the content.
    pub content: &'a str,
    /// The namespace for objects that name none.
    pub install_namespace: &'a str,
    /// The configuration, with the defaults that the class has now.
    pub config: &'a Config,
}

/// Whose turn it is in a staged update. Other policies ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Turn {
    /// Others come first.
    #[default]
    Later,
    /// This BundleDeployment may have the component that its class has now.
    Now,
    /// The update to the component that the class has now is stopped, and goes back.
    Back,
}

/// The revision whose component keeps rendering: the last one, or the one that it rolled back, where it has the same class and everything
/// else that the author of the BundleDeployment decides. `None` where the newest component renders: its author changed something, the policy
/// is `Automatic`, or the class is as it was. An update that goes back returns the revision before it, unless a user approved the update.
pub fn held<'a>(
    policy: UpdatePolicy,
    turn: Turn,
    history: &'a [Revision],
    inputs: &Inputs<'_>,
) -> Option<&'a Revision> {
    if policy == UpdatePolicy::Automatic {
        return None;
    }
    let same = |revision: &&Revision| {
        revision.provisioner.class == inputs.provisioner.class
            && revision.content_digest == inputs.content
            && revision.install_namespace == inputs.install_namespace
            && has_own_config(revision, inputs.config)
    };
    let known = recent(history).find(same)?;
    let component = inputs.provisioner.digest.as_str();
    let is_current = known.provisioner.digest == component && inputs.config.digest().as_str() == known.config_digest;
    if policy == UpdatePolicy::Staged
        && turn == Turn::Back
        && known.provisioner.digest == component
        && known.approval.is_none()
    {
        let is_earlier = |revision: &&Revision| {
            revision.provisioner.digest != component && revision.outcome == Outcome::Succeeded && same(revision)
        };
        if let Some(earlier) = history.iter().rfind(is_earlier) {
            return Some(earlier);
        }
    }
    (!is_current).then_some(known)
}

/// Whether this revision is held because a staged update goes back from the component that rendered what runs.
pub fn goes_back(policy: UpdatePolicy, turn: Turn, history: &[Revision], held: Option<&Revision>) -> bool {
    let differs = |(held, current): (&Revision, &Revision)| held.provisioner.digest != current.provisioner.digest;
    policy == UpdatePolicy::Staged && turn == Turn::Back && held.zip(history.last()).is_some_and(differs)
}

/// Whether an update that renders needs no approval: with `WhenUnchanged`, if both components render the same release; with `Staged`, in its
/// turn. The configuration of a class has no turn. Either way the release that it replaces is installed.
pub fn moves(policy: UpdatePolicy, turn: Turn, history: &[Revision], held: &Candidate, update: &Candidate) -> bool {
    let may = match policy {
        UpdatePolicy::Manual | UpdatePolicy::Automatic => false,
        UpdatePolicy::WhenUnchanged => held.release.digest == update.release.digest,
        UpdatePolicy::Staged => turn == Turn::Now && held.provisioner.digest != update.provisioner.digest,
    };
    may && held.install_namespace == update.install_namespace && is_due(history, held)
}

/// The last revision; while it is a rollback, also what it rolled back, to the one that the spec caused. The newest first.
pub(crate) fn recent(history: &[Revision]) -> impl Iterator<Item = &Revision> {
    let rollbacks = history.iter().rev().take_while(|revision| revision.rollback_to.is_some()).count();
    history.iter().rev().take(rollbacks.saturating_add(1))
}

/// Whether an update of the class leads from one revision to another one: another component renders the same content with the same configuration.
pub(crate) fn is_of_class(before: &Revision, after: &Revision) -> bool {
    before.provisioner.class == after.provisioner.class
        && before.provisioner.digest != after.provisioner.digest
        && before.content_digest == after.content_digest
        && before.own_config_digest == after.own_config_digest
}

/// Whether the BundleDeployment sets the same configuration. Revisions of earlier versions have only the digest that includes the defaults
/// of the class.
fn has_own_config(revision: &Revision, config: &Config) -> bool {
    match &revision.own_config_digest {
        Some(own) => config.own().as_str() == own,
        None => config.digest().as_str() == revision.config_digest,
    }
}

/// Whether an update may be offered for approval: the release that it replaces is installed.
pub fn is_due(history: &[Revision], held: &Candidate) -> bool {
    !revisions::begins(history, held) && history.last().is_some_and(|current| current.outcome != Outcome::RollingOut)
}

/// The provisioners of a change.
pub fn change(history: &[Revision], candidate: &Candidate) -> ProvisionerChange {
    let installed = history.last().map(|current| current.provisioner.clone());
    ProvisionerChange { installed, new: candidate.provisioner.clone() }
}

/// What a change comes from, for the status; none for the usual cause.
pub fn cause(is_update: bool) -> Option<ChangeCause> {
    is_update.then_some(ChangeCause::Provisioner)
}

/// A warning that the newer component does not render the bundle.
pub fn failed(newest: &ProvisionerInUse, held: &Revision, message: &str) -> BundleWarning {
    let class = &newest.class;
    warning(
        UPDATE_FAILED,
        &format!(
            "the update of provisioner class {class} to {} fails: {message}; the release keeps {}",
            component(newest),
            component(&held.provisioner)
        ),
    )
}

/// A warning that the newer component is quarantined, so that nothing is known about its update.
pub fn quarantined(newest: &ProvisionerInUse, held: &Revision, message: &str) -> BundleWarning {
    let class = &newest.class;
    warning(
        UPDATE_WAITS,
        &format!(
            "the update of provisioner class {class} to {} waits: {message}; the release keeps {}",
            component(newest),
            component(&held.provisioner)
        ),
    )
}

/// Whether a warning is [`failed`], for this component of a class.
pub fn is_failure_of(warning: &BundleWarning, component: &str) -> bool {
    let update = warning.message.split("; the release keeps ").next().unwrap_or_default();
    warning.code == UPDATE_FAILED && update.contains(&format!("({component})"))
}

/// A warning that the component of the installed release is unavailable.
pub fn unavailable(held: &Revision, message: &str) -> BundleWarning {
    let provisioner = &held.provisioner;
    warning(
        UNAVAILABLE,
        &format!(
            "the component of provisioner class {} that rendered the installed release, {}, is unavailable: {message}; the release stays \
             as it is, and is not rendered for a change of the cluster",
            provisioner.class,
            component(provisioner)
        ),
    )
}

/// The version and the digest of a component.
pub fn component(provisioner: &ProvisionerInUse) -> String {
    let ProvisionerInUse { version, digest, .. } = provisioner;
    let version = version.as_deref().filter(|version| !version.is_empty()).map(|version| format!("{version} "));
    format!("{}({digest})", version.unwrap_or_default())
}

fn warning(code: &str, message: &str) -> BundleWarning {
    let mut message = printable(message).into_owned();
    message.truncate(message.floor_char_boundary(MESSAGE_BYTES));
    BundleWarning { code: code.to_owned(), message }
}

#[cfg(test)]
mod tests {
    use chandler_api::ApprovedChange;
    use chandler_values::Values;
    use serde_json::{Map, Value, json};

    use super::*;

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn config(defaults: &Value, own: &Value) -> Config {
        Config::layered("c", &map(defaults), &Values::default(), Some(&map(own))).unwrap()
    }

    fn provisioner(class: &str, digest: &str) -> ProvisionerInUse {
        ProvisionerInUse { class: class.into(), digest: digest.into(), ..ProvisionerInUse::default() }
    }

    /// A revision of class `c` for the content `x` in the namespace `n`.
    fn revision(number: i64, component: &str, config: &Config) -> Revision {
        Revision {
            number,
            provisioner: provisioner("c", component),
            content_digest: "x".into(),
            install_namespace: "n".into(),
            config_digest: config.digest().to_string(),
            own_config_digest: Some(config.own().to_string()),
            ..Revision::default()
        }
    }

    #[test]
    fn what_the_author_did_not_change_keeps_its_component() {
        let (defaults, own) = (json!({"a": 1}), json!({"b": 1}));
        let plain = config(&defaults, &own);
        let history = [revision(1, "1", &plain), revision(2, "2", &plain)];
        let held_by = |policy, class, component, content, namespace, config: &Config| {
            let provisioner = provisioner(class, component);
            let inputs = Inputs { provisioner: &provisioner, content, install_namespace: namespace, config };
            held(policy, Turn::Now, &history, &inputs).map(|revision| revision.number)
        };
        let manual = UpdatePolicy::Manual;
        assert_eq!(held_by(manual, "c", "3", "x", "n", &plain), Some(2), "of the newest such revision");
        assert_eq!(held_by(manual, "c", "1", "x", "n", &plain), Some(2), "an older component is another one, too");
        assert_eq!(held_by(manual, "c", "2", "x", "n", &plain), None, "nothing changed");
        let newer = config(&json!({"a": 2}), &own);
        assert_eq!(held_by(manual, "c", "2", "x", "n", &newer), Some(2), "the class has another configuration");
        assert_eq!(held_by(UpdatePolicy::Automatic, "c", "3", "x", "n", &newer), None);
        // What its author changed.
        assert_eq!(held_by(manual, "d", "3", "x", "n", &plain), None);
        assert_eq!(held_by(manual, "c", "3", "y", "n", &plain), None);
        assert_eq!(held_by(manual, "c", "3", "x", "m", &plain), None);
        assert_eq!(held_by(manual, "c", "3", "x", "n", &config(&defaults, &json!({"b": 2}))), None);
        let inputs =
            Inputs { provisioner: &provisioner("c", "3"), content: "x", install_namespace: "n", config: &plain };
        assert_eq!(held(manual, Turn::Now, &[], &inputs), None, "a new installation");
        let of_other =
            |number, rollback_to| Revision { content_digest: "y".into(), rollback_to, ..revision(number, "1", &plain) };
        let back = [history[1].clone(), of_other(3, None)];
        assert_eq!(held(manual, Turn::Now, &back, &inputs), None, "its author went back to older content");
        let failed = [of_other(1, None), history[1].clone(), of_other(3, Some(1))];
        let number = held(manual, Turn::Now, &failed, &inputs).map(|revision| revision.number);
        assert_eq!(number, Some(2), "the revision of the spec failed and was rolled back");
    }

    #[test]
    fn a_stopped_update_goes_back_unless_it_was_approved() {
        let plain = config(&json!({}), &json!({}));
        let succeeded =
            |number, component| Revision { outcome: Outcome::Succeeded, ..revision(number, component, &plain) };
        let of = |turn, history: &[Revision], component, config: &Config| {
            let provisioner = provisioner("c", component);
            let inputs = Inputs { provisioner: &provisioner, content: "x", install_namespace: "n", config };
            held(UpdatePolicy::Staged, turn, history, &inputs).map(|revision| revision.number)
        };
        let earlier = [succeeded(1, "1")];
        let turns = [Turn::Later, Turn::Now, Turn::Back];
        assert_eq!(turns.map(|turn| of(turn, &earlier, "2", &plain)), [Some(1), Some(1), Some(1)]);
        let updated = [succeeded(1, "1"), succeeded(2, "2")];
        assert_eq!(turns.map(|turn| of(turn, &updated, "2", &plain)), [None, None, Some(1)]);
        let approval = ApprovedChange { change: "d".into(), approved_by: "ann".into(), terms: None };
        let approved = [succeeded(1, "1"), Revision { approval: Some(approval), ..succeeded(2, "2") }];
        assert_eq!(of(Turn::Back, &approved, "2", &plain), None);
        assert_eq!(
            of(Turn::Back, &[succeeded(2, "2")], "2", &plain),
            None,
            "a new installation has nothing to go back to"
        );
        let back = [succeeded(1, "1"), succeeded(2, "2"), succeeded(3, "1")];
        assert_eq!(turns.map(|turn| of(turn, &back, "2", &plain)), [Some(3), Some(3), Some(3)]);
        let failed = [succeeded(1, "1"), Revision { outcome: Outcome::Failed, ..succeeded(2, "2") }];
        assert_eq!(of(Turn::Back, &failed, "2", &plain), Some(1));
    }

    #[test]
    fn an_update_moves_without_approval_as_the_policy_says() {
        let release = |bytes: &[u8]| Candidate::of_release(&chandler_core::Digest::of(bytes), "n");
        let installed = |outcome| {
            [Revision {
                release_digest: chandler_core::Digest::of(b"a").to_string(),
                install_namespace: "n".into(),
                outcome,
                ..Revision::default()
            }]
        };
        let (a, b, policy) = (release(b"a"), release(b"b"), UpdatePolicy::WhenUnchanged);
        let succeeded = installed(Outcome::Succeeded);
        assert!(moves(policy, Turn::Later, &succeeded, &a, &a));
        assert!(!moves(policy, Turn::Now, &succeeded, &a, &b), "its objects differ");
        assert!(!moves(policy, Turn::Later, &succeeded, &b, &b), "another release is installed");
        assert!(!moves(policy, Turn::Later, &installed(Outcome::RollingOut), &a, &a));
        let by = |component: &str, of: &Candidate| Candidate { provisioner: provisioner("c", component), ..of.clone() };
        let (held, update, policy) = (by("1", &a), by("2", &b), UpdatePolicy::Staged);
        let turns = [Turn::Later, Turn::Now, Turn::Back];
        assert_eq!(turns.map(|turn| moves(policy, turn, &succeeded, &held, &update)), [false, true, false]);
        assert!(!moves(policy, Turn::Now, &installed(Outcome::RollingOut), &held, &update));
        assert!(!moves(policy, Turn::Now, &succeeded, &held, &by("1", &b)), "another configuration");
        assert!(!moves(UpdatePolicy::Manual, Turn::Now, &succeeded, &held, &by("2", &a)));
    }

    #[test]
    fn a_revision_of_an_earlier_version_counts_with_the_whole_configuration() {
        let plain = config(&json!({"a": 1}), &json!({}));
        let old = Revision { own_config_digest: None, ..revision(1, "1", &plain) };
        let is_held = |config: &Config| {
            let provisioner = provisioner("c", "2");
            let inputs = Inputs { provisioner: &provisioner, content: "x", install_namespace: "n", config };
            held(UpdatePolicy::Manual, Turn::Later, std::slice::from_ref(&old), &inputs).is_some()
        };
        assert!(is_held(&plain));
        assert!(!is_held(&config(&json!({"a": 2}), &json!({}))));
    }

    #[test]
    fn warnings_name_the_class_and_both_components_and_are_bounded() {
        let plain = config(&json!({}), &json!({}));
        let held = revision(1, "sha256:1", &plain);
        let newest = ProvisionerInUse { version: Some("1.1.0".into()), ..provisioner("c", "sha256:2") };
        insta::assert_snapshot!(
            [failed(&newest, &held, "it trapped"), unavailable(&held, "no such image")].map(|it| it.message).join("\n"),
            @r"
        the update of provisioner class c to 1.1.0 (sha256:2) fails: it trapped; the release keeps (sha256:1)
        the component of provisioner class c that rendered the installed release, (sha256:1), is unavailable: no such image; the release stays as it is, and is not rendered for a change of the cluster
        "
        );
        assert!(failed(&newest, &held, &"x".repeat(5000)).message.len() <= MESSAGE_BYTES);
        let warning = failed(&newest, &held, "it trapped");
        assert!(is_failure_of(&warning, "sha256:2") && !is_failure_of(&warning, "sha256:1"));
    }

    #[test]
    fn an_update_is_due_once_what_it_replaces_is_installed() {
        let held = Candidate::of_release(&chandler_core::Digest::of(b"a"), "n");
        let current = |outcome, release: &[u8]| Revision {
            release_digest: chandler_core::Digest::of(release).to_string(),
            install_namespace: "n".into(),
            outcome,
            ..Revision::default()
        };
        assert!(is_due(&[current(Outcome::Succeeded, b"a")], &held));
        assert!(is_due(&[current(Outcome::Failed, b"a")], &held), "it may help");
        assert!(!is_due(&[current(Outcome::RollingOut, b"a")], &held));
        assert!(!is_due(&[current(Outcome::Succeeded, b"b")], &held));
        assert!(!is_due(&[], &held));
    }
}
