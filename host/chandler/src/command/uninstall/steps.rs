//! The requests, in their order, and the waiting between them.

use std::{collections::BTreeSet, time::Duration};

use chandler_core::text::one_line;
use kube::Client;

use super::{
    Uninstall, namespace,
    plan::{self, Action, Asked, Mode},
    refusals::Agreed,
};
use crate::{
    CommandError,
    read::{
        cluster,
        installation_evidence::{CONTROLLER, is_binding},
        installation_parts::{self, Place},
        namespace_objects::namespace_objects,
        uninstallation::{self, Controller, Held, Part},
    },
    view::{progress::Progress, terminal::Terminal, text::count},
    write::uninstallation as write,
};

/// The pause between two looks at the cluster.
const PAUSE: Duration = Duration::from_secs(1);

/// When a part of the installation is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// The controller.
    Controller,
    /// The bindings of policies, then the policies: without their CRDs, they would refuse other requests.
    Bindings,
    Policies,
    /// The CRDs, once no object of Chandler is left.
    Crds,
    /// Permissions, Services and the rest.
    Rest,
    /// The namespace, the account of the controller, and its binding, which shows a second run where Chandler is installed.
    Namespace,
}

/// When a part is deleted.
pub(super) fn stage(part: &Part) -> Stage {
    match part.key.kind.as_str() {
        "Deployment" => Stage::Controller,
        "ValidatingAdmissionPolicyBinding" => Stage::Bindings,
        "ValidatingAdmissionPolicy" => Stage::Policies,
        "CustomResourceDefinition" => Stage::Crds,
        "Namespace" => Stage::Namespace,
        "ServiceAccount" if part.key.name == CONTROLLER => Stage::Namespace,
        _ if is_binding(&part.key) => Stage::Namespace,
        _ => Stage::Rest,
    }
}

/// Whether it is the namespace of the controller.
pub(super) fn is_namespace(part: &Part, namespace: &str) -> bool {
    part.key.kind == "Namespace" && part.key.name == namespace
}

/// Whether it stays with the namespace: the namespace and its quotas.
pub(super) fn is_of_namespace(part: &Part, namespace: &str) -> bool {
    is_namespace(part, namespace) || part.key.kind == "ResourceQuota"
}

/// An uninstallation in progress.
pub(super) struct Removal<'a> {
    client: Client,
    options: &'a Uninstall,
    terminal: &'a Terminal,
    place: Place,
    agreed: Agreed,
    /// The UIDs of what may be in the namespace when it is deleted.
    expected: BTreeSet<String>,
    /// Whether the policy that refuses new objects was there before.
    was_locked: bool,
    is_locked: bool,
    mode: Mode,
    progress: Progress,
    waiting: String,
}

impl<'a> Removal<'a> {
    pub(super) fn new(
        client: Client,
        options: &'a Uninstall,
        terminal: &'a Terminal,
        place: Place,
        agreed: Agreed,
        was_locked: bool,
    ) -> Self {
        let progress = Progress::new(terminal);
        let mode = options.mode();
        Self {
            client,
            options,
            terminal,
            place,
            agreed,
            expected: BTreeSet::new(),
            was_locked,
            is_locked: was_locked,
            mode,
            progress,
            waiting: String::new(),
        }
    }

    /// Removes the status line, and returns what was waited for last.
    pub(super) fn ended(&self) -> String {
        self.progress.finish();
        self.waiting.clone()
    }

    /// Whether new objects of Chandler are refused.
    pub(super) fn is_locked(&self) -> bool {
        self.is_locked
    }

    /// Uninstalls everything.
    pub(super) async fn run(&mut self) -> Result<(), CommandError> {
        self.is_locked = true;
        let locked = write::refuse_new_objects(&self.client).await;
        let locked = locked.map_err(|error| {
            CommandError::failed("failed to create the admission policy that refuses new objects").because(&error)
        })?;
        if !locked {
            self.progress.report("policy", "the API server has no admission policies: new objects are not refused");
        }
        match Box::pin(self.options.check_again(&self.client, &self.place, &self.agreed, self.terminal)).await {
            Ok(expected) => self.expected = expected,
            Err(error) => {
                if !self.was_locked {
                    self.unlock().await?;
                }
                return Err(error);
            }
        }
        if self.mode == Mode::KeepWithoutController {
            // The controller does not return halfway, and its policies do not let others remove finalizers.
            self.delete(Stage::Controller).await?;
            self.delete(Stage::Bindings).await?;
            self.delete(Stage::Policies).await?;
            self.delete_objects().await?;
        } else {
            self.delete_objects().await?;
            self.delete(Stage::Controller).await?;
            self.wait_for_lease().await?;
            self.delete(Stage::Bindings).await?;
            self.delete(Stage::Policies).await?;
            self.check_empty().await?;
        }
        self.delete(Stage::Crds).await?;
        self.delete(Stage::Rest).await?;
        self.check_namespace().await?;
        self.delete(Stage::Namespace).await?;
        self.unlock().await
    }

    /// Deletes the objects of Chandler.
    async fn delete_objects(&mut self) -> Result<(), CommandError> {
        let mut asked = Asked::default();
        let namespace = self.place.system_namespace.clone();
        loop {
            let held = uninstallation::held(&self.client).await?;
            let is_new = |held: &&Held| !self.agreed.iter().any(|(_, uid)| *uid == held.uid);
            if let Some(new) = held.iter().find(is_new) {
                return Err(CommandError::failed(format!("{} was created meanwhile, and is not deleted", name(new)))
                    .hint(format!("`{}` shows and deletes it too", self.command())));
            }
            let decisions = uninstallation::decisions(&self.client, &namespace).await?;
            let Some(step) = plan::next(&held, &decisions, self.mode, &asked) else { return Ok(()) };
            let mut waits = !step.waiting.is_empty();
            for action in &step.actions {
                if self.act(action).await? {
                    asked.note(action);
                } else {
                    waits = true;
                }
            }
            if waits {
                self.wait(waiting_for(&step.waiting)).await;
            }
        }
    }

    /// Sends a request. Returns whether it was accepted; if not, it is sent again after the next look.
    async fn act(&self, action: &Action<'_>) -> Result<bool, CommandError> {
        let client = &self.client;
        let (label, what, done) = match action {
            Action::SetDeletion(held) => {
                let done = write::set_deletion(client, held, plan::wanted(held, self.mode)).await;
                ("settings", name(held), done)
            }
            Action::Delete(held) => {
                let wanted = plan::wanted(held, self.mode);
                let set =
                    if wanted == held.deletion { Ok(()) } else { write::set_deletion(client, held, wanted).await };
                let done = match set {
                    Ok(()) => write::delete(client, held, false).await,
                    Err(error) => Err(error),
                };
                ("deleting", name(held), done)
            }
            Action::Orphan(held) => ("orphaning", name(held), write::delete(client, held, true).await),
            Action::Free(held, names) => {
                let what = format!("{}: {}", name(held), names.join(", "));
                ("finalizers", what, write::remove_finalizers(client, held, names).await)
            }
            Action::DeleteDecision(decision) => {
                let what = format!("ConfigMap {}/{}", decision.namespace, decision.name);
                ("deleting", what, write::delete_decision(client, decision).await)
            }
        };
        match done {
            Ok(()) => {
                self.progress.report(label, &one_line(&what));
                Ok(true)
            }
            Err(error) if is_retried(&error, action) => Ok(false),
            Err(error) => Err(self.failed(&what, &error)),
        }
    }

    /// Deletes the parts of a stage, and waits until they are gone.
    async fn delete(&mut self, due: Stage) -> Result<(), CommandError> {
        let namespace = self.place.system_namespace.clone();
        let mut reported = Vec::new();
        loop {
            let parts = installation_parts::parts(&self.client, &self.place).await?.ours;
            let is_kept = |part: &Part| self.options.keep_namespace && is_of_namespace(part, &namespace);
            let parts: Vec<Part> = parts.into_iter().filter(|part| stage(part) == due && !is_kept(part)).collect();
            let Some(first) = parts.first() else { return Ok(()) };
            for part in &parts {
                match write::delete_part(&self.client, part).await {
                    Ok(()) if reported.contains(&part.uid) => {}
                    Ok(()) => {
                        self.progress.report("deleting", &one_line(&part.key.to_string()));
                        reported.push(part.uid.clone());
                    }
                    Err(error) if is_conflict(&error) => {}
                    Err(error) => return Err(self.failed(&part.key.to_string(), &error)),
                }
            }
            let more = parts.len().saturating_sub(1);
            let and_more = if more == 0 { String::new() } else { format!(" and {more} more") };
            self.wait(format!("{}{and_more} to be gone", first.key)).await;
        }
    }

    /// Waits until no controller works any more: one that does not belong to the Deployment has to be stopped by its administrator.
    async fn wait_for_lease(&mut self) -> Result<(), CommandError> {
        let namespace = self.place.system_namespace.clone();
        while let Controller::Holds(holder) = uninstallation::controller(&self.client, &namespace).await? {
            self.wait(format!("the controller {holder} to end, which still holds the Lease: stop it")).await;
        }
        Ok(())
    }

    /// Without a policy that refuses them, objects may have been created since.
    async fn check_empty(&self) -> Result<(), CommandError> {
        let held = uninstallation::held(&self.client).await?;
        let Some(first) = held.first() else { return Ok(()) };
        let message =
            format!("{} of Chandler were created meanwhile, such as {}", count(held.len(), "object"), name(first));
        Err(CommandError::failed(message)
            .hint("`chandler uninstall --keep-installed --without-controller` deletes them, and continues"))
    }

    /// Much time may have passed since the namespace was checked: its objects are listed again directly before it is deleted.
    async fn check_namespace(&self) -> Result<(), CommandError> {
        let parts = installation_parts::parts(&self.client, &self.place).await?.ours;
        let name = &self.place.system_namespace;
        if self.options.keep_namespace || !parts.iter().any(|part| is_namespace(part, name)) {
            return Ok(());
        }
        let objects = namespace_objects(&self.client, name).await?;
        let keys: Vec<_> = parts.iter().map(|part| &part.key).collect();
        let Some(message) = namespace::held_by(&namespace::sort(&objects, &self.expected, &keys), name) else {
            return Ok(());
        };
        Err(CommandError::failed(message)
            .hint(format!("`{} --keep-namespace` continues, and keeps it", self.command())))
    }

    fn command(&self) -> String {
        self.options.command(&self.place)
    }

    /// Accepts objects again, of which there are no kinds any more.
    async fn unlock(&mut self) -> Result<(), CommandError> {
        for part in uninstallation::lock(&self.client).await? {
            let done = write::delete_part(&self.client, &part).await;
            done.map_err(|error| self.failed(&part.key.to_string(), &error))?;
        }
        self.is_locked = false;
        Ok(())
    }

    async fn wait(&mut self, what: String) {
        self.progress.wait(&what);
        self.waiting = one_line(&what);
        tokio::time::sleep(PAUSE).await;
    }

    /// Something was written before: this is a failure, and not a refusal.
    fn failed(&self, what: &str, error: &kube::Error) -> CommandError {
        CommandError::failed(format!("failed to change {}", one_line(what)))
            .cause(cluster::cause(error))
            .hint(format!("`{}` continues", self.command()))
    }
}

fn name(held: &Held) -> String {
    format!("{} {}", held.kind.kind(), held.name)
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Whether a request is sent again: the object changed, or the API server still knows the policy that was just deleted.
fn is_retried(error: &kube::Error, action: &Action<'_>) -> bool {
    let is_policy =
        |error: &kube::Error| matches!(error, kube::Error::Api(status) if status.message.contains("denied request"));
    is_conflict(error) || matches!(action, Action::Free(..)) && is_policy(error)
}

/// What the objects wait for.
fn waiting_for(waiting: &[&Held]) -> String {
    let Some(first) = waiting.first() else { return "the API server".to_owned() };
    let more = waiting.len().saturating_sub(1);
    let and_more = if more == 0 { String::new() } else { format!(" (and {more} more)") };
    let is_held_by_us = plan::is_finalized(first) || first.finalizers.is_empty();
    let why = match &first.message {
        _ if first.is_deleting && !is_held_by_us => {
            format!(": held by the finalizers {}, which other software removes", first.finalizers.join(", "))
        }
        Some(message) if first.is_deleting => format!(": {message}"),
        _ => " to be gone".to_owned(),
    };
    format!("{}{and_more}{why}", name(first))
}

#[cfg(test)]
mod tests {
    use chandler_api::{Deletion, OwnKind};
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_holds_an_object_is_named() {
        let mut held = Held {
            kind: OwnKind::BundleDeployment,
            name: "harbour".into(),
            uid: "1".into(),
            is_deleting: true,
            finalizers: vec!["chandler.dev/teardown".into()],
            owners: Vec::new(),
            deletion: Deletion::default(),
            reason: None,
            message: Some("2 objects remain".into()),
            object: Value::Null,
        };
        assert_eq!(waiting_for(&[&held, &held]), "BundleDeployment harbour (and 1 more): 2 objects remain");
        held.finalizers = vec!["example.com/x".into()];
        let text = "BundleDeployment harbour: held by the finalizers example.com/x, which other software removes";
        assert_eq!(waiting_for(&[&held]), text);
        held.is_deleting = false;
        assert_eq!(waiting_for(&[&held]), "BundleDeployment harbour to be gone");
    }
}
