//! The desired state of an object of the release. Pure.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_core::{
    Digest, Object, ObjectKey,
    order::{self, CREATE_ONLY_ANNOTATION, Phase, Place, SEQUENCE_ANNOTATION},
};
use kube::api::ApiResource;
use serde_json::{Map, Value, json};

use crate::pure::{
    holdings::{Holdings, ObjectId},
    immutable::{ON_IMMUTABLE_ANNOTATION, RECREATE},
    live,
    owner::Owner,
};

/// The annotation with the digest of the last applied object. It distinguishes objects of another release from objects that a
/// user changed, and so shows when fields must be removed that the release no longer contains.
pub(crate) const APPLIED: &str = "chandler.dev/applied";

/// The annotation with the owner's mark, by which the controller recognizes an object that it created just before a crash.
pub(crate) const SEAL: &str = "chandler.dev/seal";

/// The desired state of an object.
#[derive(Clone, Debug)]
pub(crate) struct Desired {
    /// Its identity, with its namespace in the cluster.
    pub(crate) key: ObjectKey,
    /// The API resource of its kind.
    pub(crate) resource: ApiResource,
    /// Whether the API server serves its kind already; otherwise a CRD of the release defines it.
    pub(crate) served: bool,
    /// Its stage.
    pub(crate) stage: u32,
    /// Its phase within the stage.
    pub(crate) phase: Phase,
    /// Its place in a sequence, which takes the place of the phase.
    pub(crate) place: Option<Place>,
    /// Whether it is created and never changed.
    pub(crate) create_only: bool,
    /// Whether the release lets the host delete it and create it again, if an immutable field changes.
    pub(crate) is_recreatable: bool,
    /// The object that is applied, with all marks of the owner.
    pub(crate) value: Value,
    /// The value of [`APPLIED`].
    pub(crate) digest: String,
}

/// The API resource of a kind, and its scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) resource: ApiResource,
    pub(crate) namespaced: bool,
}

impl Desired {
    /// Adds the namespace and the marks of the owner to an object.
    pub(crate) fn new(object: &Object, kind: Served, served: bool, owner: &Owner) -> Self {
        let mut key = object.key.clone();
        key.namespace =
            kind.namespaced.then(|| key.namespace.take().unwrap_or_else(|| owner.install_namespace.clone()));
        let mut value = object.value.clone();
        normalise(&key, &mut value);
        let instruction = |name| object.annotation(name);
        let place = instruction(SEQUENCE_ANNOTATION).and_then(Place::parse);
        let create_only = instruction(CREATE_ONLY_ANNOTATION) == Some("true");
        let is_recreatable = instruction(ON_IMMUTABLE_ANNOTATION) == Some(RECREATE);
        forget_instructions(&mut value);
        edit(&mut value, "metadata", |metadata| {
            match &key.namespace {
                Some(namespace) => metadata.insert("namespace".into(), json!(namespace)),
                None => metadata.remove("namespace"),
            };
            // A bundle cannot know UIDs of the cluster, and the garbage collector deletes an object whose reference names no
            // existing owner.
            let references = owner.references();
            if references.is_empty() {
                metadata.remove("ownerReferences");
            } else {
                metadata.insert("ownerReferences".into(), json!(references));
            }
            edit(metadata, "labels", |labels| {
                labels.extend(owner.member_labels().map(|(name, text)| (name.to_owned(), json!(text))));
            });
        });
        let digest = mark(&mut value);
        seal(&mut value, &key, owner);
        Self {
            phase: order::phase_of(&key),
            place,
            create_only,
            is_recreatable,
            key,
            resource: kind.resource,
            served,
            stage: object.stage,
            value: Value::Object(value),
            digest,
        }
    }

    /// Replaces the `spec` of the release by another one.
    pub(crate) fn replace_spec(&mut self, spec: Value) {
        let Some(value) = self.value.as_object_mut() else { return };
        let seal = value.get("metadata").and_then(|metadata| metadata.get("annotations")?.get(SEAL)).cloned();
        value.insert("spec".to_owned(), spec);
        self.digest = mark(value);
        if let Some(seal) = seal {
            annotate(value, SEAL, seal);
        }
    }

    /// Names the object in the record of the owner that this one replaces, in the seal. The cluster has no object of the name.
    pub(crate) fn seal_again(&mut self, owner: &Owner) {
        let mark = owner.mark_after(&ObjectId::of(&self.key));
        if let (Some(value), Some(mark)) = (self.value.as_object_mut(), mark) {
            annotate(value, SEAL, json!(mark));
        }
    }

    /// Keeps the seal of the live object if a different seal alone is not a reason to write it: if the record of the owner is not known, or
    /// if an earlier revision wrote the same object.
    pub(crate) fn keep_seal(&mut self, live: &Value, owner: &Owner) {
        let is_own = |holdings: &Holdings| {
            live::annotation(live, APPLIED) == Some(&self.digest) && holdings.revision_of(live).is_some()
        };
        if !owner.holdings().is_none_or(|holdings| is_own(&holdings)) {
            return;
        }
        if let (Some(value), Some(seal)) = (self.value.as_object_mut(), live::annotation(live, SEAL)) {
            annotate(value, SEAL, json!(seal));
        }
    }
}

/// Marks an object as created by this owner. The mark is not part of the digest, so that two owners compute the same digest for
/// a release.
fn seal(value: &mut Map<String, Value>, key: &ObjectKey, owner: &Owner) {
    if let Some(mark) = owner.mark(&ObjectId::of(key)) {
        annotate(value, SEAL, json!(mark));
    }
}

fn annotate(value: &mut Map<String, Value>, name: &str, text: Value) {
    edit(value, "metadata", |metadata| {
        edit(metadata, "annotations", |annotations| annotations.insert(name.to_owned(), text));
    });
}

/// Removes what is meant for the host from the annotations.
fn forget_instructions(value: &mut Map<String, Value>) {
    let annotations = value.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(SEQUENCE_ANNOTATION);
        annotations.remove(CREATE_ONLY_ANNOTATION);
        annotations.remove(ON_IMMUTABLE_ANNOTATION);
    }
}

/// Records the digest of the object in its annotations, and returns it.
fn mark(value: &mut Map<String, Value>) -> String {
    edit(value, "metadata", |metadata| {
        edit(metadata, "annotations", |annotations| {
            annotations.remove(APPLIED);
            annotations.remove(SEAL);
        });
    });
    // serde_json keeps maps sorted, so the text is canonical.
    let digest = Digest::of_json(value).hex().to_owned();
    annotate(value, APPLIED, json!(digest));
    digest
}

impl Desired {
    /// The object without the owner reference, for dry runs while another owner controls it.
    pub(crate) fn unowned(&self) -> Self {
        let mut unowned = self.clone();
        if let Some(metadata) = unowned.value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("ownerReferences");
        }
        unowned
    }
}

/// Changes a member that is an object, or creates it. A member of another type stays, so that the API server refuses the object: nothing of
/// what an author wrote is replaced in silence.
fn edit<T>(value: &mut Map<String, Value>, name: &str, change: impl FnOnce(&mut Map<String, Value>) -> T) -> T {
    let member = value.entry(name).or_insert(Value::Null);
    if member.is_null() {
        *member = Value::Object(Map::new());
    }
    match member {
        Value::Object(member) => change(member),
        _ => change(&mut Map::new()),
    }
}

/// Normalizes an object to the form in which the API server stores it, where comparing or applying would not work otherwise.
fn normalise(key: &ObjectKey, value: &mut Map<String, Value>) {
    match (key.group.as_str(), key.kind.as_str()) {
        // `stringData` is write-only: the API server moves it to `data`, where no field manager would own it. Values that are not text
        // stay, so that the API server refuses the object: without it, the value would be lost.
        ("", "Secret") => {
            let is_text = |value: &Value| value.is_string() || value.is_null();
            let texts = value.get("stringData").and_then(Value::as_object);
            let data = value.get("data").is_none_or(|data| data.is_null() || data.is_object());
            if data
                && texts.is_some_and(|texts| texts.values().all(is_text))
                && let Some(Value::Object(texts)) = value.remove("stringData")
            {
                edit(value, "data", |data| {
                    for (name, text) in texts {
                        // Null is the empty text, as in the API server.
                        data.insert(name, json!(STANDARD.encode(text.as_str().unwrap_or_default())));
                    }
                });
            }
        }
        // A Job that is deleted when it is done would be missing, and would be created and run again forever. It is deleted
        // with the release.
        ("batch", "Job") => {
            if let Some(Value::Object(spec)) = value.get_mut("spec") {
                spec.remove("ttlSecondsAfterFinished");
            }
        }
        // A controller of Kubernetes writes the rules of an aggregated role.
        ("rbac.authorization.k8s.io", "ClusterRole") if value.get("aggregationRule").is_some_and(Value::is_object) => {
            value.remove("rules");
        }
        _ => {}
    }
    if is_injected(value) {
        value.values_mut().for_each(drop_ca_bundles);
    }
}

/// Whether another controller fills in CA bundles. In that case a placeholder of the bundle must not overwrite them each time.
fn is_injected(value: &Map<String, Value>) -> bool {
    let annotations = value.get("metadata").and_then(|metadata| metadata.get("annotations"));
    annotations.and_then(Value::as_object).is_some_and(|annotations| {
        annotations.keys().any(|name| {
            name.starts_with("cert-manager.io/inject-") || name == "service.beta.openshift.io/inject-cabundle"
        })
    })
}

fn drop_ca_bundles(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("caBundle");
            map.values_mut().for_each(drop_ca_bundles);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_ca_bundles),
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::pure::live::tests::owner;

    /// The desired state of an object of a release.
    pub(crate) fn desired(value: &Value, namespaced: bool) -> Desired {
        let object = Object::parse(value.to_string().as_bytes(), 0, None).unwrap();
        let resource = ApiResource {
            group: object.key.group.clone(),
            version: object.key.version.clone(),
            api_version: object.key.api_version(),
            kind: object.key.kind.clone(),
            plural: "things".into(),
        };
        Desired::new(&object, Served { resource, namespaced }, true, &owner())
    }

    #[test]
    fn the_scope_determines_the_namespace() {
        let object = |namespace: Option<&str>| json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "namespace": namespace}});
        let namespace = |namespace, namespaced| desired(&object(namespace), namespaced).key.namespace;
        assert_eq!(namespace(None, true).as_deref(), Some("install"));
        assert_eq!(namespace(Some("n"), true).as_deref(), Some("n"));
        assert_eq!(namespace(Some("n"), false), None);
        assert!(desired(&object(Some("n")), false).value["metadata"].get("namespace").is_none());
    }

    #[test]
    fn marks_of_the_owner_replace_those_of_the_bundle() {
        let object = desired(
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
                "name": "x",
                "labels": {"core.rukpak.io/owner-name": "other", "kept": "yes"},
                "annotations": {"chandler.dev/applied": "forged"},
                "ownerReferences": [{"uid": "nobody"}],
            }}),
            true,
        );
        let metadata = &object.value["metadata"];
        assert_eq!(metadata["labels"]["core.rukpak.io/owner-name"], "a");
        assert_eq!(metadata["labels"]["kept"], "yes");
        assert_eq!(metadata["annotations"][APPLIED], object.digest.as_str());
        assert_eq!(metadata["ownerReferences"], json!([owner().reference()]));
    }

    #[test]
    fn instructions_for_the_host_do_not_reach_the_cluster() {
        let object = |annotations: Value| {
            desired(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": annotations}}),
                true,
            )
        };
        let plain = object(json!({"a": "b"}));
        let ordered = object(json!({"a": "b", "chandler.dev/sequence": "olm/3", "chandler.dev/create-only": "true"}));
        assert_eq!((&plain.value, &plain.digest), (&ordered.value, &ordered.digest));
        assert_eq!((plain.place, plain.create_only), (None, false));
        assert_eq!((ordered.place, ordered.create_only), (Place::parse("olm/3"), true));
        assert!(!object(json!({"chandler.dev/create-only": "yes"})).create_only);
        let recreatable = object(json!({"a": "b", "chandler.dev/on-immutable": "Recreate"}));
        assert_eq!((&plain.value, plain.is_recreatable, recreatable.is_recreatable), (&recreatable.value, false, true));
        assert!(!object(json!({"chandler.dev/on-immutable": "Refuse"})).is_recreatable);
    }

    #[test]
    fn the_digest_follows_the_content() {
        let of = |data: &str| {
            desired(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": data}}),
                true,
            )
            .digest
        };
        assert_eq!(of("1"), of("1"));
        assert_ne!(of("1"), of("2"));
    }

    #[test]
    fn what_the_api_server_refuses_is_not_dropped_in_silence() {
        for (field, fields) in [
            ("stringData", json!({"stringData": {"a": "b", "port": 5432}})),
            ("stringData", json!({"stringData": "text"})),
            ("stringData", json!({"stringData": {"a": "b"}, "data": ["text"]})),
        ] {
            let mut object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}});
            object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let secret = desired(&object, true);
            assert_eq!((&secret.value["stringData"], secret.value.get("data")), (&fields[field], fields.get("data")));
        }
        for field in ["labels", "annotations"] {
            let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", field: "text"}});
            assert_eq!(desired(&object, true).value["metadata"][field], "text");
        }
    }

    #[test]
    fn fields_of_other_controllers_are_not_applied() {
        let secret = desired(
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"a": "b"}, "data": {"c": "ZA=="}}),
            true,
        );
        assert_eq!(secret.value["data"], json!({"a": "Yg==", "c": "ZA=="}));
        assert!(secret.value.get("stringData").is_none());
        let null = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "stringData": {"a": null}});
        assert_eq!(desired(&null, true).value["data"], json!({"a": ""}));
        let role = desired(
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "x"},
                "aggregationRule": {"clusterRoleSelectors": []}, "rules": []}),
            false,
        );
        assert!(role.value.get("rules").is_none());
        let webhook = |annotations: Value| {
            desired(
                &json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
                    "metadata": {"name": "x", "annotations": annotations},
                    "webhooks": [{"clientConfig": {"caBundle": "Cg=="}}]}),
                false,
            )
            .value["webhooks"][0]["clientConfig"]
                .clone()
        };
        assert_eq!(webhook(json!({"cert-manager.io/inject-ca-from": "n/c"})), json!({}));
        assert_eq!(webhook(json!({"service.beta.openshift.io/inject-cabundle": "true"})), json!({}));
        assert_eq!(webhook(json!({"other": "true"})), json!({"caBundle": "Cg=="}));
        assert_eq!(webhook(json!({})), json!({"caBundle": "Cg=="}));
    }

    #[test]
    fn the_seal_of_the_live_object_is_kept() {
        let config_map = |annotations: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": annotations}});
        let mut object = desired(&config_map(json!({})), true);
        let before = object.value.clone();
        object.keep_seal(&config_map(json!({})), &owner());
        assert_eq!(object.value, before, "there is none");
        object.keep_seal(&config_map(json!({SEAL: "s"})), &owner());
        assert_eq!(live::annotation(&object.value, SEAL), Some("s"));
        assert_eq!(live::annotation(&object.value, APPLIED), Some(object.digest.as_str()));
    }

    #[test]
    fn an_object_that_no_later_revision_changed_keeps_its_seal() {
        let owner = live::tests::recorded_owner();
        let holdings = owner.holdings().unwrap();
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}});
        let wanted = desired(&value, true);
        let id = ObjectId::of(&wanted.key);
        let kept = |applied: &str, seal: &str| {
            let mut object = wanted.clone();
            let mut live = value.clone();
            live["metadata"]["annotations"] = json!({APPLIED: applied, SEAL: seal});
            object.keep_seal(&live, &owner);
            live::annotation(&object.value, SEAL) == Some(seal)
        };
        assert!(kept(&wanted.digest, &holdings.mark(&id, 0)), "of an earlier version of Chandler");
        assert!(kept(&wanted.digest, &holdings.mark(&id, 1)), "of an earlier revision");
        assert!(!kept("other", &holdings.mark(&id, 1)), "another release is written with the mark of its revision");
        assert!(!kept(&wanted.digest, "forged"), "the drift is repaired");
    }

    #[test]
    fn another_spec_has_another_digest_and_the_same_seal() {
        let value = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 1}});
        let (first, mut object) = (desired(&value, true), desired(&value, true));
        object.keep_seal(&json!({"metadata": {"annotations": {SEAL: "s"}}}), &owner());
        object.replace_spec(json!({"a": 2}));
        assert_eq!(object.value["spec"], json!({"a": 2}));
        assert_ne!(object.digest, first.digest);
        assert_eq!(live::annotation(&object.value, APPLIED), Some(object.digest.as_str()));
        assert_eq!(live::annotation(&object.value, SEAL), Some("s"));
        object.replace_spec(json!({"a": 1}));
        assert_eq!(object.digest, first.digest, "the seal is not part of the digest");
    }
}
