//! Whether an installed BundleDeployment keeps the component that rendered it, while its class has a newer one.
//!
//! A class with the policy `Manual` changes no release that is installed: what its author does not change is rendered with the component and
//! the configuration of the class that rendered it before. Both are in the record, so that nothing in the cluster can forge them.

use chandler_api::{BundleWarning, ChangeCause, Outcome, ProvisionerChange, ProvisionerInUse, Revision, UpdatePolicy};
use chandler_core::text::printable;

use super::{
    config::Config,
    revisions::{self, Candidate},
};

/// The code of the warning about an update that cannot be rendered.
const UPDATE_FAILED: &str = "ProvisionerUpdateFailed";
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

/// The revision whose component keeps rendering: the last one, or the one that it rolled back, where it has the same class and everything
/// else that the author of the BundleDeployment decides. None where the newest component renders: its author changed something, the policy
/// is `Automatic`, or the class is as it was.
pub fn held<'a>(policy: UpdatePolicy, history: &'a [Revision], inputs: &Inputs<'_>) -> Option<&'a Revision> {
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
    let is_current =
        known.provisioner.digest == inputs.provisioner.digest && inputs.config.digest().as_str() == known.config_digest;
    (!is_current).then_some(known)
}

/// The last revision; while it is a rollback, also what it rolled back, to the one that the spec caused. The newest first.
fn recent(history: &[Revision]) -> impl Iterator<Item = &Revision> {
    let rollbacks = history.iter().rev().take_while(|revision| revision.rollback_to.is_some()).count();
    history.iter().rev().take(rollbacks.saturating_add(1))
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
            held(policy, &history, &inputs).map(|revision| revision.number)
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
        assert_eq!(held(manual, &[], &inputs), None, "a new installation");
        let of_other =
            |number, rollback_to| Revision { content_digest: "y".into(), rollback_to, ..revision(number, "1", &plain) };
        let back = [history[1].clone(), of_other(3, None)];
        assert_eq!(held(manual, &back, &inputs), None, "its author went back to older content");
        let failed = [of_other(1, None), history[1].clone(), of_other(3, Some(1))];
        let number = held(manual, &failed, &inputs).map(|revision| revision.number);
        assert_eq!(number, Some(2), "the revision of the spec failed and was rolled back");
    }

    #[test]
    fn a_revision_of_an_earlier_version_counts_with_the_whole_configuration() {
        let plain = config(&json!({"a": 1}), &json!({}));
        let old = Revision { own_config_digest: None, ..revision(1, "1", &plain) };
        let is_held = |config: &Config| {
            let provisioner = provisioner("c", "2");
            let inputs = Inputs { provisioner: &provisioner, content: "x", install_namespace: "n", config };
            held(UpdatePolicy::Manual, std::slice::from_ref(&old), &inputs).is_some()
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
