//! Health of kinds without pods.

use crate::{
    dependencies::Dependencies,
    health::Health,
    needs::{self, Need},
    reader::Reader,
};

/// A claim is healthy when it is bound, or when its volume is bound only once a pod uses it. Otherwise a stage that contains
/// the claim alone would wait forever for the pod of the next stage.
pub(crate) fn persistent_volume_claim(object: Reader<'_>, dependencies: &Dependencies) -> Health {
    match object.text("/status/phase") {
        "Bound" => Health::healthy(),
        "Lost" => Health::failed("has lost its volume").help("its data is lost: delete the claim to create it again"),
        "Pending" if dependencies.waits_for_consumer(object.text("/spec/storageClassName")) => {
            Health::at_rest("waits for a pod that uses it")
        }
        _ => Health::progressing("is not bound to a volume").help(format!(
            "kubectl describe -n {} persistentvolumeclaim/{}",
            object.text("/metadata/namespace"),
            object.text("/metadata/name")
        )),
    }
}

pub(crate) fn persistent_volume(object: Reader<'_>) -> Health {
    match object.text("/status/phase") {
        "Failed" => Health::degraded(format!("cannot be reclaimed: {}", object.text("/status/message"))),
        _ => Health::healthy(),
    }
}

/// A Service is healthy when it has a cluster IP. The address of a load balancer is not awaited: a cluster without load
/// balancers never sets it. Endpoints matter only where a webhook calls the Service; see [`webhook_configuration`].
pub(crate) fn service(object: Reader<'_>) -> Health {
    if object.text("/spec/type") == "LoadBalancer" && object.text("/spec/clusterIP").is_empty() {
        Health::progressing("has no cluster IP yet")
    } else {
        Health::healthy()
    }
}

pub(crate) fn namespace(object: Reader<'_>) -> Health {
    match object.text("/status/phase") {
        "" | "Active" => Health::healthy(),
        phase => Health::progressing(format!("is in phase {phase}")),
    }
}

/// A CRD is healthy while it is established: the API server serves the names that it accepted earlier. A new name that it does not accept, such
/// as a short name that is the singular of the same CRD, changes nothing about that, and stays refused for good. Only another kind would not
/// be served.
pub(crate) fn custom_resource_definition(object: Reader<'_>, dependencies: &Dependencies) -> Health {
    let refused = object.condition("NamesAccepted").filter(|condition| condition.status == "False");
    let established = object.condition("Established");
    let is_served = established.as_ref().is_some_and(|condition| condition.status == "True")
        && object.text("/status/acceptedNames/kind") == object.text("/spec/names/kind");
    match (refused, established) {
        (Some(refused), _) if !is_served => Health::failed(format!("its names are not accepted: {}", refused.text()))
            .help("another CRD uses the same names: `kubectl get crds`"),
        (None, Some(established)) if established.status == "False" && established.reason != "Installing" => {
            Health::failed(format!("is not established: {}", established.text()))
        }
        (_, Some(established)) if established.status == "True" => match (refused, needed(object, dependencies)) {
            (Some(refused), health) if health.is_healthy() => {
                Health::at_rest(format!("is served, but not by all of its names: {}", refused.text()))
            }
            (_, health) => health,
        },
        _ => Health::progressing("is not established yet"),
    }
}

/// The rule of RukPak: the condition `Available`, where `Unknown` counts as true.
pub(crate) fn api_service(object: Reader<'_>, dependencies: &Dependencies) -> Health {
    match object.condition("Available") {
        None => Health::progressing("has no condition Available yet"),
        Some(condition) if condition.status == "False" => {
            Health::progressing(format!("is not available: {}", condition.text()))
        }
        Some(_) => needed(object, dependencies),
    }
}

/// A webhook refuses every request that it should review as long as its Service has no endpoints or its CA bundle is missing.
pub(crate) fn webhook_configuration(object: Reader<'_>, dependencies: &Dependencies) -> Health {
    needed(object, dependencies)
}

fn needed(object: Reader<'_>, dependencies: &Dependencies) -> Health {
    let needs = needs::of_object(object.0);
    if let Some(Need { caller, .. }) =
        needs.iter().find(|need| need.lacks_authority && dependencies.is_due(&need.service))
        && let Some(injector) = injector(object)
    {
        return Health::progressing(format!("{injector} has not filled in the CA bundle of {caller}"));
    }
    match needs.into_iter().find(|need| dependencies.lacks_endpoints(&need.service)) {
        Some(Need { service, caller, .. }) => {
            Health::progressing(format!("{service}, which {caller} calls, has no ready endpoints"))
        }
        None => Health::healthy(),
    }
}

/// The controller that fills in the CA bundles of an object, by its annotations.
fn injector(object: Reader<'_>) -> Option<&'static str> {
    let cert_manager = [
        "cert-manager.io/inject-ca-from",
        "cert-manager.io/inject-ca-from-secret",
        "cert-manager.io/inject-apiserver-ca",
    ];
    if cert_manager.into_iter().any(|name| object.annotation(name).is_some()) {
        return Some("cert-manager");
    }
    (object.annotation("service.beta.openshift.io/inject-cabundle") == Some("true"))
        .then_some("the service CA operator")
}
