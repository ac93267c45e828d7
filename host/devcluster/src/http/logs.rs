//! `pods/log`: no container runs, so the log of a container describes it.

use std::fmt::Write as _;

use http::{Response, StatusCode};
use serde_json::Value;

use crate::{
    api::{Api, Target},
    respond::{self, Body},
    status::Status,
};

/// The log of a container of a Pod.
///
/// # Errors
/// If there is no such Pod or container, or the Pod has several containers and the request names none.
pub(super) fn answer(api: &Api, target: &Target) -> Result<Response<Body>, Status> {
    let missing = || Status::not_found(&target.resource.group_resource(), &target.name);
    let pod = api.store.get(&target.key()).ok_or_else(missing)?;
    let text = log(&pod.peek(), &target.name, target.query.get("container"))?;
    Ok(respond::with_type(StatusCode::OK, "text/plain", text.into()))
}

/// The containers of one field of a Pod's spec.
fn containers<'a>(pod: &'a Value, field: &str) -> &'a [Value] {
    let found = pod.get("spec").and_then(|spec| spec.get(field)).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn log(pod: &Value, name: &str, requested: Option<&str>) -> Result<String, Status> {
    let main = containers(pod, "containers");
    let requested = requested.filter(|requested| !requested.is_empty());
    let container = match (requested, main) {
        (Some(requested), _) => {
            let mut all = ["containers", "initContainers", "ephemeralContainers"]
                .into_iter()
                .flat_map(|field| containers(pod, field));
            all.find(|container| text(container, "name") == requested)
                .ok_or_else(|| Status::bad_request(format!("container {requested} is not valid for pod {name}")))?
        }
        (None, [only]) => only,
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|container| text(container, "name")).collect();
            let message =
                format!("a container name must be specified for pod {name}, choose one of: [{}]", names.join(" "));
            return Err(Status::bad_request(message));
        }
    };
    Ok(description(pod, name, container))
}

fn description(pod: &Value, name: &str, container: &Value) -> String {
    let mut lines = format!(
        "chandler dev simulates Pods: no process of container {} (image {}) of Pod {name} runs, so it writes no log.\n",
        text(container, "name"),
        text(container, "image"),
    );
    let words = |field: &str| {
        let words = container.get(field).and_then(Value::as_array).into_iter().flatten();
        words.filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
    };
    for (label, words) in [("command", words("command")), ("args", words("args"))] {
        if !words.is_empty() {
            // Writing to a String does not fail.
            let _ = writeln!(lines, "{label}: {words}");
        }
    }
    let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
    let mut statuses = statuses
        .filter_map(|field| pod.get("status")?.get(field)?.as_array())
        .flatten()
        .filter(|status| text(status, "name") == text(container, "name"));
    let state = statuses.next().and_then(|status| status.get("state")).and_then(Value::as_object);
    if let Some((state, details)) = state.and_then(|state| state.iter().next()) {
        let reason = text(details, "reason");
        let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
        let _ = writeln!(lines, "simulated state: {state}{reason}");
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(containers: &[&str]) -> Value {
        let containers: Vec<Value> = containers
            .iter()
            .map(|name| json!({"name": name, "image": format!("{name}:1"), "args": ["--a", "b"]}))
            .collect();
        json!({
            "spec": {"containers": containers, "initContainers": [{"name": "init", "image": "i:1"}]},
            "status": {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]},
        })
    }

    #[test]
    fn a_log_names_the_container_and_says_that_nothing_runs() {
        assert_eq!(
            log(&pod(&["c"]), "p", None).unwrap(),
            "chandler dev simulates Pods: no process of container c (image c:1) of Pod p runs, so it writes no log.\n\
             args: --a b\nsimulated state: waiting (CrashLoopBackOff)\n"
        );
        assert!(log(&pod(&["c"]), "p", Some("init")).unwrap().contains("container init (image i:1)"));
    }

    #[test]
    fn a_container_must_be_named_and_exist() {
        let message = |result: Result<String, Status>| result.unwrap_err().to_value()["message"].to_string();
        assert!(message(log(&pod(&["a", "b"]), "p", None)).contains("choose one of: [a b]"));
        assert!(message(log(&pod(&["a"]), "p", Some("x"))).contains("container x is not valid for pod p"));
    }
}
