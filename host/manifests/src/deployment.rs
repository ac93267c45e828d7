//! The Deployment of the controller.

use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentStrategy},
        core::v1::{
            Container, ContainerPort, LocalObjectReference, PersistentVolumeClaimVolumeSource, PodSpec, Volume,
        },
    },
    apimachinery::pkg::api::resource::Quantity,
};

use crate::{NAMESPACE, Profile, Settings};

/// The port of the metrics.
pub(crate) const METRICS_PORT: i32 = 9443;
/// The port of the content service.
pub(crate) const CONTENT_PORT: i32 = 8443;
/// The port of webhooks.
pub(crate) const RECEIVER_PORT: i32 = 8444;
/// The name of the port of the metrics.
pub(crate) const METRICS: &str = "https-metrics";
/// The name of the port of the content service.
pub(crate) const CONTENT: &str = "https-content";
/// The name of the port of webhooks.
pub(crate) const RECEIVER: &str = "https-receiver";
/// The label that nodes have in the file.
pub(crate) const LINUX: (&str, &str) = ("kubernetes.io/os", "linux");
/// The name of the volume of the caches.
pub(crate) const CACHE: &str = "cache";
/// The option with the address of the probes.
pub(crate) const PROBES: &str = "--probe-address=0.0.0.0:8081";
/// The SCC of OpenShift that gives Pods a user of the namespace's range.
pub(crate) const SCC: (&str, &str) = ("openshift.io/required-scc", "restricted-v2");

/// Changes the Deployment of the file.
pub(crate) fn adapt(deployment: &mut Deployment, settings: &Settings) {
    let spec = deployment.spec.get_or_insert_default();
    let replicas = settings.replicas();
    spec.replicas = Some(i32::from(replicas));
    if replicas == 1 && settings.cache_claim.is_some() {
        // A volume may be attached to one node only: the next Pod would wait for the previous one.
        spec.strategy = Some(DeploymentStrategy { type_: Some("Recreate".to_owned()), rolling_update: None });
    }
    if settings.profile == Profile::OpenShift {
        let metadata = spec.template.metadata.get_or_insert_default();
        metadata.annotations.get_or_insert_default().insert(SCC.0.to_owned(), SCC.1.to_owned());
    }
    let pod = spec.template.spec.get_or_insert_default();
    adapt_pod(pod, settings);
    for container in &mut pod.containers {
        adapt_container(container, settings);
    }
}

fn adapt_pod(pod: &mut PodSpec, settings: &Settings) {
    pod.priority_class_name.clone_from(&settings.priority_class);
    pod.image_pull_secrets =
        settings.image_pull_secret.as_ref().map(|name| vec![LocalObjectReference { name: name.clone() }]);
    pod.node_selector.get_or_insert_default().extend(settings.node_selector.clone());
    pod.tolerations = (!settings.tolerations.is_empty()).then(|| settings.tolerations.clone());
    if let Some(claim) = &settings.cache_claim {
        for volume in pod.volumes.iter_mut().flatten().filter(|volume| volume.name == CACHE) {
            let source = PersistentVolumeClaimVolumeSource { claim_name: claim.clone(), read_only: None };
            *volume = Volume { name: volume.name.clone(), persistent_volume_claim: Some(source), ..Volume::default() };
        }
    }
    if settings.profile == Profile::OpenShift
        && let Some(context) = &mut pod.security_context
    {
        // The SCC chooses the group, from the range of the namespace.
        context.fs_group = None;
    }
}

fn adapt_container(container: &mut Container, settings: &Settings) {
    container.image = Some(settings.image());
    container.args = Some(arguments(settings));
    let ports = container.ports.get_or_insert_default();
    if !settings.metrics {
        ports.retain(|port| port.name.as_deref() != Some(METRICS));
    }
    if settings.content {
        let name = Some(CONTENT.to_owned());
        ports.push(ContainerPort { name, container_port: CONTENT_PORT, ..ContainerPort::default() });
    }
    if settings.receiver {
        let name = Some(RECEIVER.to_owned());
        ports.push(ContainerPort { name, container_port: RECEIVER_PORT, ..ContainerPort::default() });
    }
    let quantity = |text: &String| Quantity(text.clone());
    let wanted = &settings.resources;
    let resources = container.resources.get_or_insert_default();
    // The limits of storage in the file stay.
    let requests = [("cpu", &wanted.requests_cpu), ("memory", &wanted.requests_memory)];
    let requests = requests.map(|(name, text)| (name.to_owned(), quantity(text)));
    resources.requests.get_or_insert_default().extend(requests);
    let limits = [("cpu", wanted.limits_cpu.as_ref()), ("memory", Some(&wanted.limits_memory))];
    let limits = limits.into_iter().filter_map(|(name, text)| Some((name.to_owned(), quantity(text?))));
    resources.limits.get_or_insert_default().extend(limits);
    if settings.profile == Profile::OpenShift
        && let Some(context) = &mut container.security_context
    {
        // The SCC chooses the user.
        context.run_as_user = None;
    }
}

/// The arguments of the container.
fn arguments(settings: &Settings) -> Vec<String> {
    let mut arguments = vec!["controller".to_owned()];
    arguments.push(format!("--log-format={}", settings.log_format.name()));
    arguments.push(PROBES.to_owned());
    if settings.metrics {
        arguments.push(format!("--metrics-address=0.0.0.0:{METRICS_PORT}"));
    }
    arguments.extend(settings.metrics_tls_secret.as_ref().map(|name| format!("--metrics-tls-secret={name}")));
    if settings.content {
        arguments.push(format!("--content-address=0.0.0.0:{CONTENT_PORT}"));
    }
    if settings.receiver {
        arguments.push(format!("--receiver-address=0.0.0.0:{RECEIVER_PORT}"));
    }
    arguments.extend(settings.receiver_tls_secret.as_ref().map(|name| format!("--receiver-tls-secret={name}")));
    if settings.namespace != NAMESPACE {
        arguments.push(format!("--system-namespace={}", settings.namespace));
    }
    arguments.extend(settings.profile.arguments().iter().map(|&argument| argument.to_owned()));
    arguments.extend(settings.arguments.iter().cloned());
    arguments
}
