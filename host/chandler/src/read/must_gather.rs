//! Reads what support needs to see of an installation. Never a Secret, and never a ConfigMap.

use chandler_api::OwnKind;
use chandler_controller::options::INSTALLATIONS_NAMESPACE;
use chandler_core::ObjectKey;
use http::Request;
use http_body_util::{BodyExt as _, Limited};
use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DynamicObject, ListParams, LogParams, TypeMeta},
    client::Body,
};
use serde_json::{Value, json};

use super::{
    cluster::{cause, group_kind},
    doctor,
    events::CLUSTER_NAMESPACE,
    installation_parts::{self, Place},
    uninstallation::{api, resource},
};
use crate::{
    CommandError,
    view::must_gather::{Content, Gathered, KIND, LOG, OBJECT, part},
};

/// The page size, in objects: a page of the largest objects of etcd has 75 MiB.
const PAGE: u32 = 50;
/// The most Events of one kind.
const EVENTS: u32 = 1000;
/// The lines of a log, from its end.
const LINES: i64 = 20_000;
/// The label of the controller's Pods.
const PODS: &str = "app=chandler";
/// The name by which the controller publishes Events.
const REPORTER: &str = "chandler";
/// The port of the metrics.
const METRICS_PORT: u16 = 9443;

/// Checks that the namespace of the controller exists. A caller who may not read namespaces gets what may be read.
pub async fn check_namespace(client: &Client, system_namespace: &str) -> Result<(), CommandError> {
    match Api::<Namespace>::all(client.clone()).get_metadata(system_namespace).await {
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Err(CommandError::not_found(format!("the namespace {system_namespace} does not exist"))
                .hint("`--system-namespace` names the namespace of the controller"))
        }
        _ => Ok(()),
    }
}

/// The annotation with the object as `kubectl apply` sent it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Reads everything, and notes what it cannot read.
pub async fn gather(client: &Client, system_namespace: &str) -> Gathered {
    let mut gathered = Gathered::default();
    version(client, &mut gathered).await;
    findings(client, system_namespace, &mut gathered).await;
    for kind in OwnKind::ALL {
        own_objects(client, *kind, &mut gathered).await;
        // Users who may create Events in their namespaces must not crowd out the controller's.
        let selected = format!("involvedObject.kind={},reportingComponent={REPORTER}", kind.kind());
        let events = Api::namespaced(client.clone(), CLUSTER_NAMESPACE);
        list_events(&events, &selected, &format!("events/{}.json", kind.plural()), &mut gathered).await;
    }
    let events = Api::namespaced(client.clone(), system_namespace);
    list_events(&events, "", "events/namespace-of-the-controller.json", &mut gathered).await;
    installation(client, system_namespace, &mut gathered).await;
    pods(client, system_namespace, &mut gathered).await;
    gathered
}

async fn version(client: &Client, gathered: &mut Gathered) {
    let server = match client.apiserver_version().await {
        Ok(info) => serde_json::to_value(info).unwrap_or_default(),
        Err(error) => {
            gathered.leave_out("the version of the API server", cause(&error));
            Value::Null
        }
    };
    let version = json!({"command": env!("CARGO_PKG_VERSION"), "server": server});
    gathered.files.insert("version.json".to_owned(), Content::Json(version));
}

async fn findings(client: &Client, system_namespace: &str, gathered: &mut Gathered) {
    match doctor::findings(client, system_namespace).await {
        Ok(findings) => {
            let findings = serde_json::to_value(findings).unwrap_or_default();
            gathered.files.insert("doctor.json".to_owned(), Content::Json(findings));
        }
        Err(error) => gathered.leave_out("the findings of chandler doctor", error.to_string()),
    }
}

/// The objects of a kind of Chandler, a file each.
async fn own_objects(client: &Client, kind: OwnKind, gathered: &mut Gathered) {
    let resource = resource(kind);
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let what = format!("{}.{}", resource.plural, resource.group);
    let (mut page, mut sum) = (ListParams::default().limit(PAGE), 0_usize);
    loop {
        let list = match api.list(&page).await {
            Ok(list) => list,
            Err(error) => return gathered.leave_out(what, cause(&error)),
        };
        for mut object in list.items {
            let name = object.name_any();
            object.types = Some(TypeMeta { api_version: resource.api_version.clone(), kind: resource.kind.clone() });
            let mut value = serde_json::to_value(object).unwrap_or_default();
            if kind == OwnKind::Alert {
                hide_url(&mut value);
            }
            let size = value.to_string().len();
            if size > OBJECT {
                gathered.leave_out(format!("{what} {name}"), format!("{size} bytes are more than {OBJECT}"));
                continue;
            }
            sum += size;
            if sum > KIND {
                return gathered
                    .leave_out(format!("{what} from {name} on"), format!("the limit of a kind is {KIND} bytes"));
            }
            gathered.files.insert(format!("objects/{}/{}.json", part(&what), part(&name)), Content::Json(value));
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return,
        }
    }
}

/// Hides the URL of an Alert, whose path may be a secret, also in the copy that `kubectl apply` keeps.
fn hide_url(alert: &mut Value) {
    if let Some(url) = alert.pointer_mut("/spec/provider/url") {
        *url = "left out".into();
    }
    if let Some(annotations) = alert.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
    }
}

async fn list_events(events: &Api<Event>, fields: &str, path: &str, gathered: &mut Gathered) {
    let mut page = ListParams::default().limit(EVENTS);
    if !fields.is_empty() {
        page = page.fields(fields);
    }
    match events.list(&page).await {
        Ok(list) if list.items.is_empty() => {}
        Ok(list) => {
            if list.metadata.continue_.is_some_and(|token| !token.is_empty()) {
                gathered.leave_out(format!("{path}, the rest"), format!("more than {EVENTS} Events"));
            }
            let items = serde_json::to_value(list.items).unwrap_or_default();
            gathered.files.insert(path.to_owned(), Content::Json(items));
        }
        Err(error) => gathered.leave_out(path, cause(&error)),
    }
}

/// The objects that `chandler manifests` prints: the Deployment, CRDs, policies, permissions, and the Leases. None of them is a Secret, and a
/// ConfigMap of a dashboard is left out.
async fn installation(client: &Client, system_namespace: &str, gathered: &mut Gathered) {
    let place = match installation_parts::place(client, system_namespace, None).await {
        Ok(place) => place,
        Err(error) => {
            gathered.leave_out("the namespace of the Lease of the cluster", error.explained());
            Place { system_namespace: system_namespace.to_owned(), lease_namespace: INSTALLATIONS_NAMESPACE.to_owned() }
        }
    };
    let parts = installation_parts::read(client, &place).await;
    for (what, error) in parts.unread {
        gathered.leave_out(format!("installation: {what}"), error.explained());
    }
    for key in parts.foreign {
        gathered.leave_out(format!("installation: {key}"), "this object is not Chandler's");
    }
    for found in parts.ours {
        let ObjectKey { group, kind, namespace, name, .. } = &found.key;
        if group.is_empty() && (kind == "ConfigMap" || kind == "Secret") {
            continue;
        }
        let file = namespace.iter().chain([name]).map(|name| part(name)).collect::<Vec<_>>().join("_");
        let path = format!("installation/{}/{file}.json", part(&group_kind(kind, group)));
        match api(client, &found.resource, namespace.as_deref()).get(name).await {
            Ok(object) => {
                let value = serde_json::to_value(object).unwrap_or_default();
                gathered.files.insert(path, Content::Json(value));
            }
            Err(error) => gathered.leave_out(path, cause(&error)),
        }
    }
}

/// The Pods of the controller, with their logs and metrics.
async fn pods(client: &Client, system_namespace: &str, gathered: &mut Gathered) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), system_namespace);
    let list = match pods.list(&ListParams::default().labels(PODS).limit(PAGE)).await {
        Ok(list) => list.items,
        Err(error) => return gathered.leave_out("the Pods of the controller", cause(&error)),
    };
    if list.is_empty() {
        gathered.leave_out("logs and metrics", format!("no Pod in {system_namespace} has the label {PODS}"));
    }
    for pod in list {
        let name = pod.name_any();
        let directory = format!("pods/{}", part(&name));
        let containers =
            pod.spec.iter().flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
        let containers: Vec<String> = containers.map(|container| container.name.clone()).collect();
        let statuses = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let restarted: Vec<String> = statuses.filter(|it| it.restart_count > 0).map(|it| it.name.clone()).collect();
        gathered
            .files
            .insert(format!("{directory}/pod.json"), Content::Json(serde_json::to_value(&pod).unwrap_or_default()));
        for container in containers {
            log(&pods, &name, &container, false, &directory, gathered).await;
            if restarted.contains(&container) {
                log(&pods, &name, &container, true, &directory, gathered).await;
            }
        }
        let path = format!("{directory}/metrics.txt");
        match metrics(client, system_namespace, &name).await {
            Ok(text) => drop(gathered.files.insert(path, Content::Text(text))),
            Err(why) => gathered.leave_out(path, why),
        }
    }
}

async fn log(pods: &Api<Pod>, pod: &str, container: &str, previous: bool, directory: &str, gathered: &mut Gathered) {
    let parameters = LogParams {
        container: Some(container.to_owned()),
        previous,
        tail_lines: Some(LINES),
        limit_bytes: i64::try_from(LOG).ok(),
        timestamps: true,
        ..LogParams::default()
    };
    let end = if previous { ".previous.log" } else { ".log" };
    let path = format!("{directory}/{}{end}", part(container));
    match pods.logs(pod, &parameters).await {
        Ok(text) => {
            if text.len() >= LOG {
                gathered.leave_out(
                    format!("{path}, the rest"),
                    format!("the limit is {LOG} bytes of the last {LINES} lines"),
                );
            }
            gathered.files.insert(path, Content::Text(text));
        }
        Err(error) => gathered.leave_out(path, cause(&error)),
    }
}

/// The metrics of a Pod, by way of the API server. The controller answers callers only that it knows, so this may be refused.
async fn metrics(client: &Client, namespace: &str, pod: &str) -> Result<String, String> {
    let path = format!("/api/v1/namespaces/{namespace}/pods/https:{pod}:{METRICS_PORT}/proxy/metrics");
    let request = Request::get(path).body(Body::empty()).map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| cause(&error))?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("the API server answered {status}"));
    }
    let body = Limited::new(response.into_body(), LOG).collect().await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}
