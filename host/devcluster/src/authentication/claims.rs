//! The claims of ServiceAccount tokens, and their validation (`k8s.io/kubernetes/pkg/serviceaccount`).

use chandler_devcluster_apimachinery::access::{User, quote::quote_all, user::service_account_user_name};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    clock, metadata,
    store::{Key, Object, Store},
};

/// The issuer of tokens; also the audience of tokens for the API itself.
pub const ISSUER: &str = "https://kubernetes.default.svc";
/// The issuer of tokens that are stored in Secrets.
pub const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";

/// How far clocks may be apart, in seconds.
const LEEWAY: i64 = 60;

/// The claims of a token for a while.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    /// Whom the token is for.
    pub aud: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub exp: i64,
    /// When it was issued.
    pub iat: i64,
    /// The issuer.
    pub iss: String,
    /// The token's own name.
    pub jti: String,
    /// Whose it is.
    #[serde(rename = "kubernetes.io")]
    pub kubernetes: Bound,
    /// When it begins.
    pub nbf: i64,
    /// The user name.
    pub sub: String,
}

/// The objects that a token is bound to: it becomes invalid when one of them is deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// The namespace of all but the node.
    pub namespace: String,
    /// The node; for tokens of a Pod, only the node that the Pod runs on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<Reference>,
    /// The Pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod: Option<Reference>,
    /// The Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Reference>,
    /// The ServiceAccount.
    pub serviceaccount: Reference,
}

/// An object by name and uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// The name.
    pub name: String,
    /// The uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

impl Reference {
    /// A reference to an object.
    pub fn to(object: &Value) -> Self {
        Self { name: metadata::name(object).to_owned(), uid: metadata::uid(object).to_owned() }
    }
}

impl Claims {
    /// The claims of a new token.
    pub fn new(bound: Bound, audiences: Vec<String>, now: OffsetDateTime, seconds: i64) -> Self {
        let now = now.unix_timestamp();
        Self {
            aud: audiences,
            exp: now.saturating_add(seconds),
            iat: now,
            iss: ISSUER.to_owned(),
            jti: Uuid::new_v4().to_string(),
            sub: service_account_user_name(&bound.namespace, &bound.serviceaccount.name),
            kubernetes: bound,
            nbf: now,
        }
    }

    /// The user of the claims, and for which of these audiences they are valid.
    ///
    /// # Errors
    /// If they are not valid now, are for none of these audiences, or are bound to an object that no longer exists; the text says which.
    pub fn user(
        &self,
        store: &Store,
        now: OffsetDateTime,
        audiences: &[String],
    ) -> Result<(User, Vec<String>), String> {
        let meant: Vec<String> = self.aud.iter().filter(|audience| audiences.contains(audience)).cloned().collect();
        if meant.is_empty() {
            let (own, wanted) = (quote_all(&self.aud), quote_all(audiences));
            return Err(format!("token audiences {own} is invalid for the target audiences {wanted}"));
        }
        let now = now.unix_timestamp();
        if now > self.exp.saturating_add(LEEWAY) {
            return Err("service account token has expired".to_owned());
        }
        if now < self.nbf.saturating_sub(LEEWAY) {
            return Err("service account token is not valid yet".to_owned());
        }
        if now < self.iat.saturating_sub(LEEWAY) {
            return Err("service account token is issued in the future".to_owned());
        }
        let Bound { namespace, node, pod, secret, serviceaccount } = &self.kubernetes;
        account(store, now, namespace, serviceaccount)?;
        let mut bound = vec![("secrets", "secret", "secret ref", secret), ("pods", "pod", "pod ref", pod)];
        if pod.is_none() {
            bound.push(("nodes", "node", "node ref", node));
        }
        for (table, kind, what, reference) in bound {
            if let Some(reference) = reference {
                let namespace = if table == "nodes" { "" } else { namespace };
                still_there(store, now, table, kind, what, namespace, reference)?;
            }
        }
        let mut user = User::service_account(namespace, &serviceaccount.name, &serviceaccount.uid);
        let mut extra = |key: &str, value: &str| {
            if !value.is_empty() {
                user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value.to_owned()]);
            }
        };
        extra("credential-id", &format!("JTI={}", self.jti));
        for (kind, reference) in [("pod", pod), ("node", node)] {
            if let Some(Reference { name, uid }) = reference {
                extra(&format!("{kind}-name"), name);
                extra(&format!("{kind}-uid"), uid);
            }
        }
        Ok((user, meant))
    }
}

/// The claims of a token that is kept in a Secret: it is valid as long as that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LegacyClaims {
    /// The issuer.
    pub iss: String,
    /// The namespace.
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub namespace: String,
    /// The name of the Secret.
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub secret: String,
    /// The name of the ServiceAccount.
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub name: String,
    /// The uid of the ServiceAccount.
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub uid: String,
    /// The user name.
    pub sub: String,
}

impl LegacyClaims {
    /// The claims of a token for a Secret.
    pub fn new(namespace: &str, secret: &str, account: &Reference) -> Self {
        Self {
            iss: LEGACY_ISSUER.to_owned(),
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            name: account.name.clone(),
            uid: account.uid.clone(),
            sub: service_account_user_name(namespace, &account.name),
        }
    }

    /// The user of the claims; `holds` reports whether the Secret contains the token.
    ///
    /// # Errors
    /// If the Secret or the ServiceAccount no longer exists; the text says which.
    pub fn user(&self, store: &Store, now: OffsetDateTime, holds: impl Fn(&Value) -> bool) -> Result<User, String> {
        let now = now.unix_timestamp();
        let secret = find(store, "secrets", &self.namespace, &self.secret);
        if !secret.is_some_and(|secret| !has_gone(secret.value(), now) && holds(secret.value())) {
            return Err("service account token has been invalidated".to_owned());
        }
        account(store, now, &self.namespace, &Reference { name: self.name.clone(), uid: self.uid.clone() })?;
        Ok(User::service_account(&self.namespace, &self.name, &self.uid))
    }
}

fn find(store: &Store, table: &str, namespace: &str, name: &str) -> Option<std::sync::Arc<Object>> {
    store.get(&Key::new(table.into(), namespace, name))
}

/// Whether an object was deleted a while ago and only its finalizers hold it.
fn has_gone(object: &Value, now: i64) -> bool {
    clock::parse(metadata::text(object, "deletionTimestamp"))
        .is_some_and(|deleted| deleted.unix_timestamp() < now.saturating_sub(LEEWAY))
}

fn account(store: &Store, now: i64, namespace: &str, claimed: &Reference) -> Result<(), String> {
    let Reference { name, uid } = claimed;
    let found = find(store, "serviceaccounts", namespace, name);
    let found = found.ok_or_else(|| format!("serviceaccounts {name:?} not found"))?;
    let actual = metadata::uid(found.value());
    if actual != uid {
        return Err(format!("service account UID ({actual}) does not match claim ({uid})"));
    }
    if has_gone(found.value(), now) {
        return Err(format!("service account {namespace}/{name} has been deleted"));
    }
    Ok(())
}

fn still_there(
    store: &Store,
    now: i64,
    table: &str,
    kind: &str,
    what: &str,
    namespace: &str,
    claimed: &Reference,
) -> Result<(), String> {
    let gone = || "service account token has been invalidated".to_owned();
    let found = find(store, table, namespace, &claimed.name).ok_or_else(gone)?;
    let actual = metadata::uid(found.value());
    if actual != claimed.uid {
        let claimed = &claimed.uid;
        return Err(format!("{kind} UID ({actual}) does not match service account {what} claim ({claimed})"));
    }
    if has_gone(found.value(), now) { Err(gone()) } else { Ok(()) }
}
