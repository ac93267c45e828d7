//! Tokens for ServiceAccounts: the subresource `token`.

use chandler_devcluster_apimachinery::schema::{FieldError, GroupVersionKind};
use serde::Deserialize;
use serde_json::{Value, json};
use time::Duration;

use super::{Api, Input, Target, write::Written};
use crate::{
    authentication::claims::{Bound, Claims, ISSUER, Reference},
    clock, metadata,
    pipeline::body,
    status::{GroupResource, Status},
    store::{Key, object::render},
};

const API_VERSION: &str = "authentication.k8s.io/v1";
const KIND: &str = "TokenRequest";

/// The shortest and the longest time that a token may be valid, and how long it is when nothing is said; seconds.
const SHORTEST: i64 = 600;
const LONGEST: i64 = 1 << 32;
const USUAL: i64 = 3600;

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    audiences: Option<Vec<String>>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<BoundReference>,
}

/// The object with which the token ends.
#[derive(Debug, Default, Deserialize, serde::Serialize)]
#[serde(rename_all = "camelCase", default)]
struct BoundReference {
    #[serde(skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    uid: String,
}

impl Api {
    /// Issues a token for a ServiceAccount; answers the request with its status.
    ///
    /// # Errors
    /// When there is no such ServiceAccount, or the request is not valid.
    pub fn request_token(&self, target: &Target, input: &Input) -> Result<Written, Status> {
        let mut request = body::of_kind(API_VERSION, KIND, &input.content_type, &input.body)?.value;
        check_type(&request)?;
        check_identity(target, &request)?;
        self.find("namespaces", "", &target.namespace)?;
        let account = self.find("serviceaccounts", &target.namespace, &target.name)?;
        let (stated, uid) = (metadata::uid(&request), metadata::uid(&account));
        if !stated.is_empty() && stated != uid {
            let why = format!(
                "the UID in the token request ({stated}) does not match the UID of the service account ({uid})"
            );
            let about = GroupResource { group: "authentication.k8s.io".to_owned(), plural: KIND.to_owned() };
            return Err(Status::conflict(&about, &target.name, &why));
        }
        let spec = request.get("spec").filter(|spec| !spec.is_null()).map(Spec::deserialize).transpose();
        let spec = spec.map_err(|error| {
            Status::bad_request(format!("{KIND} in version \"v1\" cannot be handled as a {KIND}: spec: {error}"))
        })?;
        let Spec { audiences, expiration_seconds, bound_object_ref } = spec.unwrap_or_default();
        let audiences = audiences.filter(|audiences| !audiences.is_empty()).unwrap_or_else(|| vec![ISSUER.to_owned()]);
        let seconds = expiration_seconds.unwrap_or(USUAL);
        check_expiration(seconds)?;
        let map = metadata::of(&mut request);
        map.insert("name".to_owned(), target.name.as_str().into());
        map.insert("namespace".to_owned(), target.namespace.as_str().into());
        let mut warnings = Vec::new();
        self.confirm_subresource(target, &request, &mut warnings)?;

        let now = self.clock.now();
        let bound = self.bound(target, &account, bound_object_ref.as_ref())?;
        let claims = Claims::new(bound, audiences.clone(), now, seconds);
        let key = self.authenticator.key().ok_or_else(|| Status::internal("there is no key to sign tokens with"))?;
        let token =
            key.sign(&claims).map_err(|error| Status::internal(format!("failed to generate token: {error}")))?;

        let fields = metadata::as_map(&mut request);
        fields.insert("apiVersion".to_owned(), API_VERSION.into());
        fields.insert("kind".to_owned(), KIND.into());
        fields.insert(
            "spec".to_owned(),
            json!({"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": bound_object_ref}),
        );
        let expiration = clock::seconds(now.saturating_add(Duration::seconds(seconds)));
        fields.insert("status".to_owned(), json!({"token": token, "expirationTimestamp": expiration}));
        let map = metadata::of(&mut request);
        map.insert("uid".to_owned(), uid.into());
        map.insert("creationTimestamp".to_owned(), clock::seconds(now).into());
        Ok(Written { body: render(&request), created: true, warnings })
    }

    fn find(&self, plural: &str, namespace: &str, name: &str) -> Result<Value, Status> {
        let about = GroupResource { group: String::new(), plural: plural.to_owned() };
        let found = self.store.get(&Key::new(plural.into(), namespace, name));
        found.map(|object| object.value().clone()).ok_or_else(|| Status::not_found(&about, name))
    }

    /// The object that the token is bound to besides the ServiceAccount.
    fn bound(&self, target: &Target, account: &Value, reference: Option<&BoundReference>) -> Result<Bound, Status> {
        let mut bound = Bound {
            namespace: target.namespace.clone(),
            node: None,
            pod: None,
            secret: None,
            serviceaccount: Reference::to(account),
        };
        let Some(reference) = reference else { return Ok(bound) };
        let (group, version) = reference.api_version.split_once('/').unwrap_or(("", &reference.api_version));
        let object = match (group, reference.kind.as_str()) {
            ("", "Pod") => {
                let pod = self.find("pods", &target.namespace, &reference.name)?;
                let text = |field: &str| pod.pointer(field).and_then(Value::as_str).unwrap_or_default();
                if text("/spec/serviceAccountName") != target.name {
                    return Err(Status::bad_request(format!(
                        "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                        target.name
                    )));
                }
                let node = text("/spec/nodeName");
                if !node.is_empty() {
                    // A node that is not known is named without a uid.
                    let unknown = || Reference { name: node.to_owned(), uid: String::new() };
                    bound.node =
                        Some(self.find("nodes", "", node).map_or_else(|_| unknown(), |node| Reference::to(&node)));
                }
                bound.pod = Some(Reference::to(&pod));
                pod
            }
            ("", "Node") => {
                let node = self.find("nodes", "", &reference.name)?;
                bound.node = Some(Reference::to(&node));
                node
            }
            ("", "Secret") => {
                let secret = self.find("secrets", &target.namespace, &reference.name)?;
                bound.secret = Some(Reference::to(&secret));
                secret
            }
            (_, kind) => {
                return Err(Status::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        if !reference.uid.is_empty() && reference.uid != metadata::uid(&object) {
            let why = format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have been \
                 deleted and then recreated",
                reference.uid
            );
            let about = GroupResource { group: String::new(), plural: reference.kind.clone() };
            return Err(Status::conflict(&about, &reference.name, &why));
        }
        Ok(bound)
    }
}

fn check_type(request: &Value) -> Result<(), Status> {
    let text = |field: &str| request.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let fits = |found: &str, expected: &str| found.is_empty() || found == expected;
    if request.is_object() && fits(api_version, API_VERSION) && fits(kind, KIND) {
        return Ok(());
    }
    Err(Status::bad_request(format!("{kind} in version {api_version:?} cannot be handled as a {KIND}")))
}

/// Name and namespace in the body, if set, must equal the path's.
fn check_identity(target: &Target, request: &Value) -> Result<(), Status> {
    let (name, namespace) = (metadata::name(request), metadata::namespace(request));
    if !namespace.is_empty() && namespace != target.namespace {
        return Err(Status::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if !name.is_empty() && name != target.name {
        let error = FieldError::invalid(&"metadata.name", name, "must match the service account name if specified");
        return Err(Status::invalid(&kind(), &target.name, &[error]));
    }
    Ok(())
}

fn check_expiration(seconds: i64) -> Result<(), Status> {
    let detail = match seconds {
        ..SHORTEST => "may not specify a duration less than 10 minutes",
        SHORTEST..=LONGEST => return Ok(()),
        _ => "may not specify a duration larger than 2^32 seconds",
    };
    Err(Status::invalid(&kind(), "", &[FieldError::invalid(&"spec.expirationSeconds", seconds, detail)]))
}

fn kind() -> GroupVersionKind {
    GroupVersionKind::from_api_version(API_VERSION, KIND)
}
