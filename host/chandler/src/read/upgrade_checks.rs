//! What an upgrade of Chandler needs in a cluster: the CRDs, the custom resources that exist, the roles, and the version of Kubernetes. Each
//! check reads, and never fails: what the caller may not read is a finding.

use chandler_api::OwnKind;
use chandler_crd_upgrade::{CheckError, Enforcement, ObjectCheck, Policy, Report, comparable, compare};
use chandler_permissions::{PolicyRule, cover};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
};
use serde_json::Value;

use super::{cluster, release_files::ReleaseFiles};
use crate::view::{
    doctor::{Finding, State},
    text::{count, one_line},
};

/// The names of the checks.
const CRDS: &str = "CRDs";
const OBJECTS: &str = "objects";
const ROLES: &str = "permissions";
const SERVER: &str = "API server";
const CONTROLLER: &str = "controller";
/// The number of findings of one CRD that are listed.
const LISTED: usize = 5;
/// The number of permissions that a finding lists.
const RULES: usize = 3;

/// Checks what the upgrade needs.
pub async fn findings(client: &Client, system_namespace: &str, next: &ReleaseFiles) -> Vec<Finding> {
    let mut findings = vec![server(client, next).await, controller(client, system_namespace).await];
    let before = findings.len();
    for crd in &next.crds {
        findings.extend(crd_findings(client, crd, &next.version).await);
    }
    if findings.len() == before {
        let crds = count(next.crds.len(), "CRD");
        findings.push(Finding::new(CRDS, State::Ok, format!("{crds} can be upgraded, and all objects are valid")));
    }
    let before = findings.len();
    for role in &next.roles {
        findings.extend(role_finding(client, system_namespace, role, &next.version).await);
    }
    if findings.len() == before {
        let roles = count(next.roles.len(), "role");
        findings.push(Finding::new(ROLES, State::Ok, format!("{roles} grant what the new version needs")));
    }
    findings
}

async fn server(client: &Client, next: &ReleaseFiles) -> Finding {
    let info = match client.apiserver_version().await {
        Ok(info) => info,
        Err(error) => return unreadable(SERVER, "the version of the API server", &error),
    };
    let version = one_line(&info.git_version);
    let minor: String = info.minor.chars().take_while(char::is_ascii_digit).collect();
    let needed = next.kubernetes_minor;
    match minor.parse::<u32>() {
        Ok(minor) if info.major == "1" && minor < needed => {
            let message = format!(
                "{version} is older than 1.{needed}, which version {} needs for its admission policies",
                next.version
            );
            Finding::new(SERVER, State::Warning, message)
        }
        Ok(_) => Finding::new(SERVER, State::Ok, version),
        Err(_) => Finding::new(SERVER, State::Unknown, format!("{version} has no minor version that is a number")),
    }
}

/// The image of the controller that runs, which may be of another version than this command.
async fn controller(client: &Client, system_namespace: &str) -> Finding {
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), system_namespace);
    let what = format!("the Deployment {system_namespace}/chandler");
    let found = match deployments.get_opt("chandler").await {
        Ok(found) => found,
        Err(error) => return unreadable(CONTROLLER, &what, &error),
    };
    let image = found
        .and_then(|found| found.spec?.template.spec?.containers.into_iter().next()?.image)
        .map(|image| one_line(&image));
    let own = chandler_manifests::VERSION;
    match image {
        None => Finding::new(
            CONTROLLER,
            State::Warning,
            format!(
                "{what} does not exist, so the version of the controller is not known; this command has version {own}"
            ),
        ),
        // The tag of images of this version.
        Some(image) if tag(&image) == Some(&format!("v{own}")) || tag(&image) == Some(own) => {
            Finding::new(CONTROLLER, State::Ok, format!("{image}, the version of this command"))
        }
        Some(image) => Finding::new(
            CONTROLLER,
            State::Warning,
            format!(
                "the tag of {image} does not say that it is version {own} of this command: what is compared is this command with the new version"
            ),
        ),
    }
}

/// The tag of an image.
fn tag(image: &str) -> Option<&str> {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    let (_, tag) = name.rsplit('/').next()?.split_once(':')?;
    Some(tag)
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn texts<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a str> {
    let list = object.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// Compares a CRD with the installed one, and the objects with its schema.
async fn crd_findings(client: &Client, new: &Value, version: &str) -> Vec<Finding> {
    let name = text(new, "/metadata/name");
    if !OwnKind::is_crd(name) {
        let message = format!("version {version} has a CRD that is not one of Chandler: {}", one_line(name));
        return vec![Finding::new(CRDS, State::Problem, message)];
    }
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let crds = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    let old = match crds.get_opt(name).await {
        Err(error) => return vec![unreadable(CRDS, &format!("CRD {name}"), &error)],
        Ok(None) => {
            let message = format!("CRD {name} does not exist: version {version} needs it");
            return vec![Finding::new(CRDS, State::Warning, message).with(APPLY)];
        }
        Ok(Some(old)) => serde_json::to_value(old).unwrap_or_default(),
    };
    let mut findings: Vec<Finding> = stored_versions(&old, new).into_iter().collect();
    match upgrade(client, &old, new).await {
        Ok(report) => findings.extend(of_report(&report)),
        Err(error) => findings.push(Finding::new(CRDS, State::Unknown, one_line(&error.to_string()))),
    }
    findings
}

/// The command that installs the CRDs of the new version.
const APPLY: &str = "chandler crds | kubectl apply --server-side -f -    # with the command of the new version";

/// The command that stores all objects in the current versions.
const MIGRATE: &str = "chandler migrate storage --apply";

/// Versions in which objects may be stored, and which the new CRD lacks or no longer stores.
fn stored_versions(old: &Value, new: &Value) -> Option<Finding> {
    let versions: Vec<&Value> = new.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten().collect();
    let name = text(new, "/metadata/name");
    let gone: Vec<&str> = texts(old, "/status/storedVersions")
        .filter(|stored| !versions.iter().any(|version| text(version, "/name") == *stored))
        .collect();
    if !gone.is_empty() {
        let gone = gone.join(", ");
        let message = format!("CRD {name} lacks {gone}, in which objects may be stored (status.storedVersions)");
        return Some(Finding::new(CRDS, State::Problem, message).with(MIGRATE));
    }
    let is_storage = |version: &&&Value| version.get("storage") == Some(&Value::Bool(true));
    let storage = versions.iter().find(is_storage).map(|version| text(version, "/name"))?;
    let other: Vec<&str> = texts(old, "/status/storedVersions").filter(|stored| *stored != storage).collect();
    (!other.is_empty()).then(|| {
        let other = other.join(", ");
        let message = format!("objects of CRD {name} may be stored as {other}: a later version may drop it");
        Finding::new(CRDS, State::Warning, message).with(MIGRATE)
    })
}

/// The breaking changes between two CRDs, and the objects that only the new schema refuses.
async fn upgrade(client: &Client, old: &Value, new: &Value) -> Result<Report, CheckError> {
    // Every object is checked, since an upgrade of Chandler is rare. What only accepts more than before breaks no client: this is the client.
    let policy = Policy { sample_size: Some(i32::MAX), loosening: Some(Enforcement::Warn), ..Policy::default() };
    comparable(old, new)?;
    let mut report = compare(old, new, &policy);
    if let Some(check) = ObjectCheck::plan(old, new, &policy) {
        report.extend(objects(client, check).await?);
    }
    Ok(report)
}

/// Lists the custom resources page by page.
async fn objects(client: &Client, mut check: ObjectCheck) -> Result<Report, CheckError> {
    let listed = check.resource().clone();
    let kind = GroupVersionKind::gvk(&listed.group, &listed.version, &listed.kind);
    let api = Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, &listed.plural));
    let mut page = ListParams::default();
    while let Some(limit) = check.next_page() {
        page.limit = Some(limit);
        match api.list(&page).await {
            Ok(list) => {
                let remaining = list.metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok());
                let objects: Vec<Value> =
                    list.items.into_iter().filter_map(|object| serde_json::to_value(object).ok()).collect();
                let more = list.metadata.continue_.filter(|token| !token.is_empty());
                // Evaluating rules takes processor time.
                check = tokio::task::block_in_place(|| check.page(&objects, remaining).map(|()| check))?;
                match more {
                    Some(token) => page.continue_token = Some(token),
                    None => break,
                }
            }
            Err(kube::Error::Api(status)) if status.code == 404 => break,
            Err(error) => {
                check.unreadable(&cluster::cause(&error));
                break;
            }
        }
    }
    Ok(check.finish())
}

fn of_report(report: &Report) -> Vec<Finding> {
    let of = |state: State| {
        move |finding: &chandler_crd_upgrade::Finding| {
            let is_object = finding.rule == chandler_crd_upgrade::Rule::ExistingCustomResources;
            Finding::new(if is_object { OBJECTS } else { CRDS }, state, one_line(&finding.to_string()))
        }
    };
    let mut findings: Vec<Finding> = report.refusals.iter().map(of(State::Problem)).collect();
    findings.extend(report.warnings.iter().map(of(State::Warning)));
    let rest = findings.len().saturating_sub(LISTED);
    findings.truncate(LISTED);
    if rest > 0 {
        let worst = findings.iter().map(|finding| finding.state).max().unwrap_or(State::Warning);
        findings.push(Finding::new(CRDS, worst, format!("and {rest} more like these")));
    }
    findings.extend(report.notes.iter().map(|note| Finding::new(OBJECTS, State::Unknown, one_line(note))));
    findings
}

/// The permissions of a role of the new version that the installed role lacks.
async fn role_finding(client: &Client, system_namespace: &str, new: &Value, version: &str) -> Option<Finding> {
    let (kind, name) = (text(new, "/kind"), text(new, "/metadata/name"));
    let namespace = installed_namespace(text(new, "/metadata/namespace"), system_namespace);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind));
    let what = if namespace.is_empty() { format!("{kind} {name}") } else { format!("{kind} {namespace}/{name}") };
    let what = one_line(&what);
    let api = match (kind, namespace) {
        ("ClusterRole", _) => Api::<DynamicObject>::all_with(client.clone(), &resource),
        ("Role", namespace) if !namespace.is_empty() => Api::namespaced_with(client.clone(), namespace, &resource),
        _ => {
            return Some(Finding::new(
                ROLES,
                State::Problem,
                format!("version {version} has {what}, which is not a role"),
            ));
        }
    };
    let command = "chandler manifests | kubectl apply --server-side -f -    # with the command of the new version, and your settings";
    let installed = match api.get_opt(name).await {
        Err(error) => return Some(unreadable(ROLES, &what, &error)),
        Ok(None) => {
            return Some(Finding::new(ROLES, State::Warning, format!("{what} does not exist")).with(command));
        }
        Ok(Some(installed)) => installed,
    };
    let rules = |value: Option<&Value>| -> Vec<PolicyRule> {
        value.and_then(|rules| serde_json::from_value(rules.clone()).ok()).unwrap_or_default()
    };
    let (has, wants) = (rules(installed.data.get("rules")), rules(new.get("rules")));
    let missing = cover::compact(cover::uncovered(&has.iter().collect::<Vec<_>>(), &wants));
    if missing.is_empty() {
        return None;
    }
    let mut shown: Vec<String> = missing.iter().take(RULES).map(ToString::to_string).collect();
    if missing.len() > RULES {
        shown.push(format!("{} more", missing.len() - RULES));
    }
    let message = one_line(&format!("{what} lacks what version {version} needs: {}", shown.join("; ")));
    Some(Finding::new(ROLES, State::Warning, message).with(command))
}

/// Where a Role of a version is installed: the files have the default settings.
fn installed_namespace<'a>(namespace: &'a str, system_namespace: &'a str) -> &'a str {
    if namespace == chandler_manifests::NAMESPACE { system_namespace } else { namespace }
}

fn unreadable(check: &'static str, what: &str, error: &kube::Error) -> Finding {
    let cause = cluster::cause(error);
    Finding::new(check, State::Unknown, one_line(&format!("{what} cannot be read: {cause}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_tag_is_read_from_a_reference_with_a_port_and_a_digest() {
        for (image, expected) in [
            ("registry.example.com:5000/chandler:v0.1.0@sha256:00", Some("v0.1.0")),
            ("registry.example.com:5000/chandler", None),
            ("chandler:v1", Some("v1")),
        ] {
            assert_eq!(tag(image), expected, "{image}");
        }
    }

    #[test]
    fn a_stored_version_that_is_gone_is_a_problem_and_one_that_is_not_stored_any_more_a_warning() {
        let new = json!({"metadata": {"name": "catalogs.chandler.dev"}, "spec": {"versions": [
            {"name": "v1", "storage": true}, {"name": "v1beta1", "storage": false}]}});
        let state = |stored: &[&str]| {
            stored_versions(&json!({"status": {"storedVersions": stored}}), &new).map(|finding| finding.state)
        };
        assert_eq!(state(&["v1"]), None);
        assert_eq!(state(&["v1", "v1beta1"]), Some(State::Warning));
        assert_eq!(state(&["v1", "v1alpha1"]), Some(State::Problem));
    }
}
