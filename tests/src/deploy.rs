//! The files of `deploy/` as a test applies them: in the namespaces of its run, and with names of the run where a cluster has only one
//! object of a name.

use std::fs;

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::{GroupVersionKind, TypeMeta},
};
use serde_json::Value;

use crate::{Run, bundles};

/// The text of a file of `deploy/`.
pub fn text(file: &str) -> String {
    let path = bundles::workspace().join("deploy").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("failed to read {}: {error}", path.display()))
}

/// The objects of a file of `deploy/`, with the names of this run. The namespace `shop` is the run's install namespace.
pub fn objects(run: &Run, file: &str) -> Vec<Value> {
    read(run, &text(file))
}

/// Like [`objects`], with the text of such a file.
pub fn read(run: &Run, text: &str) -> Vec<Value> {
    let text = text.replace("namespace: chandler-system", &format!("namespace: {}", run.system_namespace()));
    let text = text.replace("namespace: shop", &format!("namespace: {}", run.name()));
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    objects.retain(|object| object.get("kind").is_none_or(|kind| kind != "Namespace"));
    for object in &mut objects {
        // On a shared cluster a controller may be installed.
        for pointer in ["/metadata/name", "/roleRef/name"] {
            let rbac = object.get("apiVersion").is_none_or(|version| version != "v1");
            let own = |name: &&mut Value| rbac && **name != "cluster-admin";
            if let Some(Value::String(name)) = object.pointer_mut(pointer).filter(own) {
                *name = format!("{run}-{name}");
            }
        }
    }
    objects
}

/// Applies objects with the label of the run, as `kubectl apply` would.
pub async fn apply(client: &Client, run: &Run, objects: &[Value]) {
    for object in objects {
        let mut object = object.clone();
        run.mark(&mut object);
        let types: TypeMeta = serde_json::from_value(object.clone()).expect("an object has apiVersion and kind");
        let kind = GroupVersionKind::try_from(&types).expect("an API version");
        let resource = ApiResource::from_gvk(&kind);
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
        let api: Api<DynamicObject> = match text("/metadata/namespace") {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let name = text("/metadata/name").expect("an object has a name");
        let applied = api.patch(name, &PatchParams::apply("e2e").force(), &Patch::Apply(&object)).await;
        applied.unwrap_or_else(|error| panic!("{object}: {error}"));
    }
}
