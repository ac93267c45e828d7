//! Explains why an object is still terminating.

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

/// The number of custom resources that are listed.
const LOOKED_AT: u32 = 3;

/// The finalizers of a terminating object, and the objects that a Namespace or CRD waits for.
pub(crate) async fn describe(cluster: &Cluster, member: &Member) -> String {
    let mut text = terminating(Reader(&member.object));
    if member.key.is_namespace() {
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

/// The remaining content of a namespace, as its controller reports it.
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

/// The first custom resources that remain of a CRD, or `None` if they may not be listed.
async fn custom_resources(cluster: &Cluster, crd: &Value) -> Option<String> {
    let resource = custom_resource(crd)?;
    let page = cluster.metadata_page(&resource, LOOKED_AT, None).await.ok()?;
    let listed: Vec<String> = page.objects.iter().map(named).collect();
    let more = if page.next.is_some() { "; and more" } else { "" };
    (!listed.is_empty()).then(|| format!("remaining: {}{more}", listed.join("; ")))
}

/// A custom resource with its finalizers.
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
    fn the_remaining_content_of_a_namespace_is_reported() {
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
    fn a_custom_resource_is_named_with_its_finalizers() {
        let object =
            json!({"kind": "Ox", "metadata": {"name": "x", "namespace": "n", "finalizers": ["example.com/stable"]}});
        assert_eq!(named(&object), "Ox n/x is being deleted, held by finalizer example.com/stable");
    }
}
