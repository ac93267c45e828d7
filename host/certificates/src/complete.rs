//! Completes a release with Secrets and CA bundles before it is applied.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::{Digest, Object, ObjectError, Release};
use serde_json::{Map, Value, json};

use crate::{
    annotations::{INJECT_CA, RESTART, SERVING_DIGEST},
    declaration::{Declaration, Declarations, client_configurations},
    material::Material,
    policy::Policy,
};

impl Declarations {
    /// The release to apply. It contains the Secrets, one for each `material` in the order of
    /// [`Declarations::certificates`], and `caBundle` is overwritten wherever the annotations request it.
    pub fn complete(&self, release: &Release, materials: &[Material], policy: &Policy) -> Result<Release, ObjectError> {
        let mut objects: Vec<Object> = release.objects().to_vec();
        for object in &mut objects {
            if object.annotation(INJECT_CA) == Some("true") {
                self.inject(object, materials);
            }
            if object.annotation(RESTART) == Some("true") {
                self.mark_pods(object, materials);
            }
        }
        for (declaration, material) in self.certificates().iter().zip(materials) {
            objects.push(secret(declaration, material.annotations(policy), material.data())?);
        }
        Ok(with_objects(release, objects))
    }

    /// The release with the requested Secrets but without data, to show without a cluster which objects the release
    /// has.
    pub fn outline(&self, release: &Release) -> Result<Release, ObjectError> {
        let mut objects: Vec<Object> = release.objects().to_vec();
        for declaration in self.certificates() {
            objects.push(secret(declaration, Map::new(), Map::new())?);
        }
        Ok(with_objects(release, objects))
    }

    fn inject(&self, object: &mut Object, materials: &[Material]) {
        let configurations = client_configurations(&object.key, &object.value).unwrap_or_default();
        edit(object, |value| {
            for configuration in configurations {
                let material = self.certificate_of(&configuration.service).and_then(|index| materials.get(index));
                let place = value.pointer_mut(&configuration.pointer).and_then(Value::as_object_mut);
                if let Some((material, place)) = material.zip(place) {
                    place.insert("caBundle".to_owned(), json!(STANDARD.encode(material.authorities())));
                }
            }
        });
    }

    /// Annotates the Pods of a workload with the digest of the certificates that they mount.
    fn mark_pods(&self, object: &mut Object, materials: &[Material]) {
        let namespace = object.key.namespace.clone();
        edit(object, |value| {
            let Some(template) = value.pointer_mut("/spec/template") else { return };
            let mounted = mounted_secrets(template);
            let served: Vec<String> = self
                .certificates()
                .iter()
                .zip(materials)
                // A workload without a namespace is in the install namespace, like its Secrets.
                .filter(|(declaration, _)| namespace.is_none() || declaration.secret.namespace == namespace)
                .filter(|(declaration, _)| mounted.contains(&declaration.secret.name))
                .map(|(_, material)| material.certificate())
                .collect();
            if served.is_empty() {
                return;
            }
            let digest = Digest::of(served.concat().as_bytes());
            within(template, "metadata", |metadata| {
                within(metadata, "annotations", |annotations| {
                    if let Some(annotations) = annotations.as_object_mut() {
                        annotations.insert(SERVING_DIGEST.to_owned(), json!(digest.hex()));
                    }
                });
            });
        });
    }
}

fn with_objects(release: &Release, objects: Vec<Object>) -> Release {
    Release::new(objects, release.probes().to_vec(), release.findings().to_vec())
        .described(release.description().clone())
}

/// The names of the Secrets that Pods of this template mount.
fn mounted_secrets(template: &Value) -> Vec<String> {
    let volumes = template.pointer("/spec/volumes").and_then(Value::as_array).into_iter().flatten();
    let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    volumes
        .flat_map(|volume| {
            let projected = volume.pointer("/projected/sources").and_then(Value::as_array).into_iter().flatten();
            let projected = projected.filter_map(move |source| text(source, "/secret/name"));
            text(volume, "/secret/secretName").into_iter().chain(projected)
        })
        .collect()
}

fn secret(
    declaration: &Declaration,
    annotations: Map<String, Value>,
    data: Map<String, Value>,
) -> Result<Object, ObjectError> {
    let value = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": declaration.secret.name,
            "namespace": declaration.secret.namespace,
            "annotations": annotations,
        },
        "type": "kubernetes.io/tls",
        "data": data,
    });
    match value {
        Value::Object(value) => Object::from_value(value, declaration.stage, None),
        _ => Err(ObjectError::NotAnObject),
    }
}

/// Edits an object as a JSON value, so that JSON pointers work.
fn edit(object: &mut Object, change: impl FnOnce(&mut Value)) {
    let mut value = Value::Object(std::mem::take(&mut object.value));
    change(&mut value);
    if let Value::Object(value) = value {
        object.value = value;
    }
}

/// Edits a field that is an object; creates it if necessary.
fn within(value: &mut Value, name: &str, change: impl FnOnce(&mut Value)) {
    let Some(map) = value.as_object_mut() else { return };
    let member = map.entry(name).or_insert_with(|| json!({}));
    if !member.is_object() {
        *member = json!({});
    }
    change(member);
}

#[cfg(test)]
mod tests;
