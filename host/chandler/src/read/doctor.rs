//! The checks of `chandler doctor`: each reads what it needs, and never fails. What the caller may not read is a finding, too.

use chandler_api::{ConditionType, find_condition};
use chandler_controller::options::LEASE;
use chandler_manifests::{ManifestsError, Profile, Settings};
use futures::{StreamExt as _, stream};
use k8s_openapi::{
    api::{apps::v1::Deployment, coordination::v1::Lease, core::v1::ServiceAccount},
    apimachinery::pkg::apis::meta::v1::Condition,
    jiff::{SignedDuration, Timestamp},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, DynamicObject, ListParams},
    core::{GroupVersionKind, TypeMeta},
};
use serde_json::Value;

use super::{
    account_patterns::overlaps,
    cluster::PAGE,
    controller_lease::{self, Evidence},
    dev_controller,
    installation_evidence::CONTROLLER,
};
use crate::view::{
    doctor::{Finding, State, difference},
    text::one_line,
};

/// How many objects are read at once.
const AT_ONCE: usize = 8;
/// How far the clocks of the controller and of this machine may differ.
const SKEW: SignedDuration = SignedDuration::from_secs(30);
/// The number of names that a finding lists.
const LISTED: usize = 3;
/// The first minor version of Kubernetes 1 that has admission policies.
const POLICIES_SINCE: u32 = 30;

/// What is compared with the objects of `chandler manifests`: the check, its kinds, and how bad it is if one is missing.
const INSTALLED: [(&str, &[&str], State); 4] = [
    ("CRDs", &["CustomResourceDefinition"], State::Problem),
    ("permissions", &["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"], State::Problem),
    ("admission policies", &["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"], State::Warning),
    ("API priority", &["FlowSchema"], State::Warning),
];

/// The kinds whose conditions are read, with the command that shows more.
const REPORTING: [(&str, &str, &str, &str); 5] = [
    ("core.rukpak.io/v1alpha2", "BundleDeployment", "bundledeployments", "chandler list"),
    ("core.deppy.io/v1alpha1", "Resolution", "resolutions", "chandler explain resolution/NAME"),
    (
        "platform.openshift.io/v1alpha1",
        "PlatformOperator",
        "platformoperators",
        "chandler status platformoperator/NAME",
    ),
    ("chandler.dev/v1alpha1", "Catalog", "catalogs", "chandler catalog list"),
    ("chandler.dev/v1alpha1", "ProvisionerClass", "provisionerclasses", "chandler status provisionerclass/NAME"),
];

/// Checks an installation.
///
/// # Errors
/// The manifests in this program are wrong, which is a bug.
pub async fn findings(client: &Client, system_namespace: &str) -> Result<Vec<Finding>, ManifestsError> {
    let mut findings = vec![server(client).await];
    findings.extend(controller(client, system_namespace).await);
    findings.extend(options(client, system_namespace).await);
    findings.extend(accounts(client).await);
    let mut settings = Settings::of(Profile::Standalone);
    settings.set(&format!("namespace={system_namespace}"))?;
    let wanted = chandler_manifests::objects(&settings)?;
    for (check, kinds, missing) in INSTALLED {
        let is_of =
            |object: &&Value| object.get("kind").and_then(Value::as_str).is_some_and(|kind| kinds.contains(&kind));
        findings.extend(installed(client, check, missing, wanted.iter().filter(is_of)).await);
    }
    for (api_version, kind, plural, command) in REPORTING {
        findings.extend(conditions(client, api_version, kind, plural, command).await);
    }
    Ok(findings)
}

async fn server(client: &Client) -> Finding {
    match client.apiserver_version().await {
        Err(error) => Finding::new("API server", State::Problem, one_line(&error.to_string())),
        Ok(info) => {
            let minor: String = info.minor.chars().take_while(char::is_ascii_digit).collect();
            let is_old = info.major == "1" && minor.parse().is_ok_and(|minor: u32| minor < POLICIES_SINCE);
            let version = one_line(&info.git_version);
            if is_old {
                let message =
                    format!("{version} has no ValidatingAdmissionPolicies, which 1.{POLICIES_SINCE} introduced");
                Finding::new("API server", State::Warning, message)
            } else {
                Finding::new("API server", State::Ok, version)
            }
        }
    }
}

/// Whether a controller holds its Lease, and whether its clock is right.
async fn controller(client: &Client, system_namespace: &str) -> Vec<Finding> {
    let pods = format!("kubectl get pods --namespace {system_namespace}");
    let leases: Api<Lease> = Api::namespaced(client.clone(), system_namespace);
    let lease = match leases.get_opt(LEASE).await {
        Ok(lease) => lease,
        Err(error) => return vec![unreadable("controller", &format!("the Lease {system_namespace}/{LEASE}"), &error)],
    };
    let now = Timestamp::now();
    if let Some(absent) = controller_lease::absent(lease.as_ref(), system_namespace, Evidence::Unobserved, now) {
        return vec![Finding::new("controller", State::Problem, one_line(&absent)).with(pods)];
    }
    let lease = lease.unwrap_or_default();
    let holder = dev_controller::holder(&lease).unwrap_or_default();
    let mut found = vec![Finding::new("controller", State::Ok, one_line(&format!("{holder} holds the Lease")))];
    let renewed = lease.spec.and_then(|spec| spec.renew_time).map(|time| time.0);
    let ahead = renewed.map(|renewed| renewed.duration_since(now)).unwrap_or_default();
    if ahead > SKEW {
        let seconds = ahead.as_secs();
        let message =
            format!("the clock of the controller is {seconds} seconds ahead of this machine's: correct one of them");
        found.push(Finding::new("clock", State::Warning, message));
    }
    found
}

/// Options of the controller that give users the permissions of others.
async fn options(client: &Client, system_namespace: &str) -> Option<Finding> {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), system_namespace);
    let deployment = match deployments.get_opt(CONTROLLER).await {
        Ok(deployment) => deployment?,
        Err(error) => {
            return Some(unreadable("options", &format!("Deployment {system_namespace}/{CONTROLLER}"), &error));
        }
    };
    let containers = deployment.spec?.template.spec?.containers;
    let arguments: Vec<String> = containers.into_iter().flat_map(|it| it.args.unwrap_or_default()).collect();
    let account = account_of_every_namespace(&arguments)?;
    let message = format!(
        "--default-service-account {account} is the account of that name in every install namespace, which the author of a BundleDeployment \
         chooses: with tenants, name NAMESPACE/{account}, or set spec.serviceAccount and --accounts-in (docs/tenants.md)"
    );
    Some(Finding::new("options", State::Warning, one_line(&message)))
}

/// The default account without a namespace, if these arguments have one.
fn account_of_every_namespace(arguments: &[String]) -> Option<&str> {
    const OPTION: &str = "--default-service-account";
    let next = arguments.iter().skip(1).map(Some).chain([None]);
    let found = arguments.iter().zip(next).find_map(|(argument, next)| match argument.strip_prefix(OPTION)? {
        "" => next.map(String::as_str),
        value => value.strip_prefix('='),
    });
    found.filter(|account| !account.contains('/'))
}

/// Accounts of different tenants that list the same names.
async fn accounts(client: &Client) -> Vec<Finding> {
    let api: Api<ServiceAccount> = Api::all(client.clone());
    let mut annotated: Vec<(String, String)> = Vec::new();
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = match api.list_metadata(&page).await {
            Ok(list) => list,
            Err(error) => return vec![unreadable("accounts", "the annotations of ServiceAccounts", &error)],
        };
        annotated.extend(list.items.iter().filter_map(|account| {
            let patterns = account.annotations().get("chandler.dev/bundledeployments")?;
            Some((format!("{}/{}", account.namespace().unwrap_or_default(), account.name_any()), patterns.clone()))
        }));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    let found = overlaps(annotated.iter().map(|(account, patterns)| (account.as_str(), patterns.as_str())));
    let findings = found.iter().map(|it| Finding::new("accounts", State::Warning, one_line(&it.to_string())));
    summarized(findings.collect())
}

/// Compares objects of this version with the cluster's.
async fn installed(
    client: &Client,
    check: &'static str,
    missing: State,
    wanted: impl Iterator<Item = &Value>,
) -> Vec<Finding> {
    let wanted: Vec<&Value> = wanted.collect();
    let compared = stream::iter(wanted.iter().map(|object| compare(client, check, missing, object)));
    let found: Vec<Finding> = compared.buffered(AT_ONCE).collect::<Vec<_>>().await.into_iter().flatten().collect();
    if !found.is_empty() {
        return summarized(found);
    }
    vec![Finding::new(check, State::Ok, format!("{} objects are as in this version", wanted.len()))]
}

/// Many findings of one kind are one: a cluster without Chandler lacks everything.
fn summarized(found: Vec<Finding>) -> Vec<Finding> {
    let rest = found.len().saturating_sub(LISTED);
    let worst = found.iter().map(|finding| finding.state).max();
    let mut listed: Vec<Finding> = found.into_iter().take(LISTED).collect();
    if let (Some(worst), Some(last), 1..) = (worst, listed.last().cloned(), rest) {
        listed.push(Finding { state: worst, message: format!("and {rest} more like these"), ..last });
    }
    listed
}

async fn compare(client: &Client, check: &'static str, missing: State, wanted: &Value) -> Option<Finding> {
    let types: TypeMeta = serde_json::from_value(wanted.clone()).ok()?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::try_from(&types).ok()?);
    let text = |pointer: &str| wanted.pointer(pointer).and_then(Value::as_str);
    let (name, namespace) = (text("/metadata/name")?, text("/metadata/namespace"));
    let api: Api<DynamicObject> = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let what = match namespace {
        Some(namespace) => format!("{} {namespace}/{name}", resource.kind),
        None => format!("{} {name}", resource.kind),
    };
    let command = "chandler manifests | kubectl apply --server-side -f -    # with the settings of your installation";
    match api.get_opt(name).await {
        Err(error) => Some(unreadable(check, &what, &error)),
        Ok(None) => Some(Finding::new(check, missing, format!("{what} does not exist")).with(command)),
        Ok(Some(live)) => {
            let live = serde_json::to_value(&live).ok()?;
            let path = decisive(wanted)
                .find_map(|part| difference(wanted.get(part)?, live.get(part)).map(|path| format!("{part}.{path}")))?;
            let path = path.trim_end_matches('.');
            let message = format!("{what} is not as in this version of the command: {path} differs");
            Some(Finding::new(check, State::Warning, message).with(command))
        }
    }
}

/// The parts of an object that say what it does: everything but types and metadata.
fn decisive(object: &Value) -> impl Iterator<Item = &str> {
    let parts = object.as_object().into_iter().flat_map(|object| object.keys());
    parts.map(String::as_str).filter(|part| !["apiVersion", "kind", "metadata", "status"].contains(part))
}

/// How many objects of a kind are not ready.
async fn conditions(
    client: &Client,
    api_version: &str,
    kind: &'static str,
    plural: &str,
    command: &str,
) -> Option<Finding> {
    let types = TypeMeta { api_version: api_version.to_owned(), kind: kind.to_owned() };
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::try_from(&types).ok()?, plural);
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let (mut count, mut failing) = (0_usize, Vec::new());
    let mut page = ListParams::default().limit(PAGE);
    loop {
        let list = match api.list(&page).await {
            Ok(list) => list,
            // The check of CRDs says so.
            Err(kube::Error::Api(status)) if status.code == 404 => return None,
            Err(error) => return Some(unreadable(kind, plural, &error)),
        };
        count += list.items.len();
        failing.extend(list.items.iter().filter_map(not_ready));
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    if count == 0 {
        return None;
    }
    if failing.is_empty() {
        return Some(Finding::new(kind, State::Ok, format!("{count} of {count} are ready")));
    }
    let names: Vec<String> = failing.iter().take(LISTED).cloned().collect();
    let more = if failing.len() > LISTED { ", ..." } else { "" };
    let message = format!("{} of {count} are not ready: {}{more}", failing.len(), names.join(", "));
    Some(Finding::new(kind, State::Warning, one_line(&message)).with(command))
}

/// The name of an object that reports that it is not ready, with the reason.
fn not_ready(object: &DynamicObject) -> Option<String> {
    let conditions = object.data.pointer("/status/conditions")?;
    let conditions: Vec<Condition> = serde_json::from_value(conditions.clone()).ok()?;
    let ready = find_condition(&conditions, ConditionType::Ready).filter(|ready| ready.status == "False")?;
    Some(format!("{} ({})", object.name_any(), ready.reason))
}

fn unreadable(check: &'static str, what: &str, error: &kube::Error) -> Finding {
    let message = match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    };
    Finding::new(check, State::Unknown, one_line(&format!("{what} cannot be read: {message}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_default_account_without_a_namespace_is_found() {
        for (arguments, expected) in [
            (&["controller", "--default-service-account=bundles"][..], Some("bundles")),
            (&["controller", "--default-service-account", "bundles", "--leader-elect"], Some("bundles")),
            (&["controller", "--default-service-account=ci/bundles"], None),
            (&["controller", "--default-service-account", "ci/bundles"], None),
            (&["controller", "--default-service-account"], None),
            (&["controller", "--require-service-account"], None),
            (&[], None),
        ] {
            let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
            assert_eq!(account_of_every_namespace(&arguments), expected, "{arguments:?}");
        }
    }
}
