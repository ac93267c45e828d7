//! What holds back an object that is being deleted.

use chandler_health::{Reader, terminating};
use serde_json::Value;

use crate::{
    client::cluster::Cluster,
    pure::{
        crd::{custom_resource, is_crd},
        live,
        member::Member,
    },
};

/// How many custom resources are looked at.
const LOOKED_AT: u32 = 3;

/// Why an object that is being deleted is still there: its finalizers and, for what holds others, those others.
pub(crate) async fn describe(cluster: &Cluster, member: &Member) -> String {
    let mut text = terminating(Reader(&member.object));
    if member.key.group.is_empty() && member.key.kind == "Namespace" {
        if let Some(contents) = contents(&member.object) {
            text.extend([": ", &contents]);
        }
    } else if is_crd(&member.key)
        && let Some(left) = custom_resources(cluster, &member.object).await
    {
        text.extend([": ", &left]);
    }
    text
}

/// What the namespace controller says is still in a namespace.
fn contents(namespace: &Value) -> Option<String> {
    let conditions = namespace.pointer("/status/conditions")?.as_array()?;
    let text = |condition: &Value, name: &str| condition.get(name).and_then(Value::as_str).map(str::to_owned);
    let messages: Vec<String> = conditions
        .iter()
        .filter(|condition| condition.get("status").and_then(Value::as_str) == Some("True"))
        .filter_map(|condition| text(condition, "message"))
        .collect();
    (!messages.is_empty()).then(|| messages.join("; "))
}

/// The first custom resources that have not gone with their CRD. Whoever may not see them is not told.
async fn custom_resources(cluster: &Cluster, crd: &Value) -> Option<String> {
    let resource = custom_resource(crd)?;
    let page = cluster.metadata_page(&resource, LOOKED_AT, None).await.ok()?;
    let listed: Vec<String> = page.objects.iter().map(named).collect();
    let more = if page.next.is_some() { "; and more" } else { "" };
    (!listed.is_empty()).then(|| format!("still there: {}{more}", listed.join("; ")))
}

/// A custom resource with what holds it.
fn named(object: &Value) -> String {
    let text = |pointer| live::text(object, pointer);
    let (kind, namespace, name) = (text("/kind"), text("/metadata/namespace"), text("/metadata/name"));
    let separator = if namespace.is_empty() { "" } else { "/" };
    format!("{kind} {namespace}{separator}{name} {}", terminating(Reader(object)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_namespace_tells_what_is_left_in_it() {
        let condition = |status: &str, message: &str| json!({"type": "Any", "status": status, "message": message});
        let namespace = json!({"status": {"conditions": [
            condition("False", "All resources successfully discovered"),
            condition("True", "Some resources are remaining: oxen.example.com has 1 resource instances"),
            condition("True", "Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances"),
        ]}});
        insta::assert_snapshot!(contents(&namespace).unwrap(), @"Some resources are remaining: oxen.example.com has 1 resource instances; Some content in the namespace has finalizers remaining: example.com/x in 1 resource instances");
        assert_eq!(contents(&json!({"status": {"conditions": [condition("False", "x")]}})), None);
        assert_eq!(contents(&json!({})), None);
    }

    #[test]
    fn a_custom_resource_is_named_with_what_holds_it() {
        let object =
            json!({"kind": "Ox", "metadata": {"name": "x", "namespace": "n", "finalizers": ["example.com/stable"]}});
        assert_eq!(named(&object), "Ox n/x is being deleted, held by finalizer example.com/stable");
    }
}
