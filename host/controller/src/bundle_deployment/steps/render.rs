//! Render: content becomes a release, through the provisioner of its class.
//!
//! Rendering is a pure function of content, component, configuration and those facts about the target that the provisioner requests. So a
//! release is cached until one of these changes, also across restarts, and a reconcile that changes nothing calls no plugin. Changes of
//! facts about the cluster that the provisioner did not request do not call it either.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use chandler_content::Tree;
use chandler_core::{Content as _, Digest, Release, Request, Target};
use chandler_decisions::{
    config::Config,
    quarantine::{self, Call, Purpose},
};
use chandler_engine::{CallError, Limits, Provisioned, Usage};
use chandler_monitoring::{CallOutcome, CallUsage, Step};
use chandler_releases::Made;
use chandler_turns::Requester;
use serde_json::{Map, Value};

use super::{super::handles::RenderHandles, concealed::Known};
use crate::provisioner_class::{Class, Pass, Quarantined};

/// The name of the cache of releases in metrics.
pub(crate) const RELEASES: &str = "releases";

/// What a release is rendered from.
pub(in super::super) struct RenderInput<'a> {
    /// The BundleDeployment.
    pub(in super::super) name: &'a str,
    /// The namespace for objects that do not name one.
    pub(in super::super) install_namespace: &'a str,
    /// The name of the class, for metrics.
    pub(in super::super) class_name: &'a str,
    pub(in super::super) class: &'a Class,
    pub(in super::super) tree: Tree,
    pub(in super::super) config: &'a Config,
    /// On whose behalf it is rendered.
    pub(in super::super) requester: &'a Requester,
}

/// A release, and the key of its inputs in the cache.
pub(crate) struct Rendered {
    pub(crate) made: Made,
    pub(crate) release: Arc<Release>,
}

/// The provisioner returned no release.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RenderError {
    /// The call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The component is quarantined, and was not called.
    #[error(transparent)]
    Quarantined(#[from] Quarantined),
}

/// Renders a release, or takes it from the cache.
#[tracing::instrument(target = "chandler::trace", name = "release", skip_all)]
pub(in super::super) async fn render(
    handles: &RenderHandles<'_>,
    input: RenderInput<'_>,
) -> Result<Rendered, RenderError> {
    let RenderInput { name, install_namespace, class_name, class, tree, config, requester } = input;
    let target = target(name, install_namespace, handles).await;
    let request = Request { config: config.get().clone(), target };
    // Built-in components are updated with the controller, so that no author could end a quarantine.
    let is_third_party = class.artifact.is_some();
    // What a built-in class reports has values as they are, which are hidden.
    let conceals = config.is_secret() && is_third_party;
    let inputs = inputs(tree.digest(), class.provisioner.digest(), &request.config);
    // A release without texts is not for others that have the same inputs.
    let inputs = if conceals { Digest::of_json(&("concealed", &inputs)) } else { inputs };
    let started = Instant::now();
    let cached = handles.releases.get_for(&inputs, &request.target).await;
    handles.metrics.looked_up(RELEASES, cached.is_some());
    let counted = quarantine::requester(requester, handles.accounts);
    let call = Call { deployment: name, requester: &counted, inputs: &inputs, purpose: Purpose::Render };
    if let Some((made, release)) = cached {
        if is_third_party {
            wake(handles, handles.calls.rendered(class.provisioner.digest(), call));
        }
        handles.metrics.stepped(Step::Render, started.elapsed());
        handles.in_use.note(name, &made);
        handles.refused.forget(name);
        return Ok(Rendered { made, release });
    }
    // A provisioner may log a value of a Secret.
    let log_bytes = if config.is_secret() { 0 } else { class.limits.log_bytes };
    let limits = Limits { log_bytes, ..class.limits.clone() };
    let pass =
        if is_third_party { Some(handles.calls.admit(class_name, class.provisioner.digest(), call)?) } else { None };
    let started = Instant::now();
    let Provisioned { result, asked, usage, .. } =
        class.provisioner.on_behalf_of(requester).provision_and_record(&request, Arc::new(tree.clone()), &limits).await;
    let outcome = match &result {
        Ok(_) => CallOutcome::Completed,
        Err(error) => CallOutcome::Failed(error.reason().as_str()),
    };
    let Usage { memory, read, returned, .. } = usage;
    let quarantined = pass.map_or(Ok(()), |pass| note(handles, pass, class_name, &result, usage));
    handles.metrics.called(class_name, outcome, started.elapsed(), CallUsage { memory, read, returned });
    handles.metrics.stepped(Step::Render, started.elapsed());
    let known = Known { content: &tree, config: &request.config };
    let release = match result {
        Ok(release) if conceals => Arc::new(known.release(&release)),
        Ok(release) => Arc::new(release),
        Err(error) => {
            handles.refused.note(name, asked, &request.target);
            // A call that was to find out whether the component works says nothing about this bundle.
            quarantined?;
            return Err(RenderError::Call(if conceals { known.error(error) } else { error }));
        }
    };
    handles.refused.forget(name);
    tracing::info!(
        deployment = %name,
        release = %release.digest().short(),
        objects = release.objects().len(),
        "rendered"
    );
    let made = handles.releases.insert_for(&inputs, &request.target, &asked, Arc::clone(&release)).await;
    handles.in_use.note(name, &made);
    Ok(Rendered { made, release })
}

/// Notes what a call showed about its component. An error if the component is quarantined, and the call did not end that.
fn note(
    handles: &RenderHandles<'_>,
    pass: Pass<'_>,
    class_name: &str,
    result: &Result<Release, CallError>,
    usage: Usage,
) -> Result<(), Quarantined> {
    match result {
        Ok(release) => {
            wake(handles, pass.rendered(release.objects(), usage.time, usage.has_schema));
            Ok(())
        }
        Err(error) if is_failure(error) => pass.failed(class_name, usage.time),
        // The machine or the host is the cause.
        Err(CallError::Starved { .. } | CallError::Internal(_)) => Ok(()),
        Err(_) => {
            pass.refused(usage.time);
            Ok(())
        }
    }
}

/// Whether the component crashed, or exceeded a limit.
pub(super) fn is_failure(error: &CallError) -> bool {
    matches!(
        error,
        CallError::Timeout { .. } | CallError::OutOfMemory { .. } | CallError::Trapped(_) | CallError::LimitExceeded(_)
    )
}

/// Makes BundleDeployments render again that waited for a component.
fn wake(handles: &RenderHandles<'_>, waiting: BTreeSet<String>) {
    for name in waiting {
        handles.memory.try_again(&name);
        handles.deployments.wake(&name);
    }
}

/// The target of the objects of a BundleDeployment: its cluster as it was last polled.
pub(super) async fn target(name: &str, install_namespace: &str, handles: &RenderHandles<'_>) -> Target {
    let cluster_info = match handles.target_info.get(name) {
        Some(other) => other,
        None => handles.cluster_info.get().await,
    };
    Target {
        name: name.to_owned(),
        namespace: install_namespace.to_owned(),
        kubernetes_version: cluster_info.kubernetes_version.clone(),
        api_kinds: cluster_info.api_kinds.clone(),
    }
}

/// The digest of everything that a release depends on, except the facts about the target that its provisioner requests.
fn inputs(content: &Digest, component: &Digest, config: &Map<String, Value>) -> Digest {
    Digest::of_json(&(content, component, config))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_inputs_change_with_each_of_their_parts() {
        let map = |value: Value| value.as_object().cloned().unwrap();
        let (a, b) = (Digest::of(b"a"), Digest::of(b"b"));
        let one = inputs(&a, &b, &map(json!({})));
        assert_eq!(one, inputs(&a, &b, &map(json!({}))));
        for other in [
            inputs(&b, &b, &map(json!({}))),
            inputs(&a, &a, &map(json!({}))),
            inputs(&b, &a, &map(json!({}))),
            inputs(&a, &b, &map(json!({"x": 1}))),
        ] {
            assert_ne!(one, other);
        }
    }
}
