//! Secrets of type `kubernetes.io/service-account-token`: they get a token, and are deleted with their ServiceAccount.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::object::change;
use crate::{
    api::{Api, delete::DeleteOptions},
    authentication::claims::{LegacyClaims, Reference},
    metadata,
    registry::Resource,
    store::{Change, Key, Scope},
};

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// The controller.
pub struct Tokens {
    api: Arc<Api>,
    authority: String,
}

impl Tokens {
    /// A controller that puts this certificate of the authority beside the tokens.
    pub fn new(api: Arc<Api>, authority: String) -> Self {
        Self { api, authority }
    }

    /// Works until dropped.
    pub async fn run(self) {
        let of = |table: &str| Scope { resource: Some(table.into()), namespace: None };
        let Some(secrets) = self.api.registry.snapshot().resource("", "v1", "secrets").cloned() else { return };
        loop {
            let (listing, mut changed) = self.api.store.list_and_watch(of("secrets"));
            let (_, mut accounts) = self.api.store.list_and_watch(of("serviceaccounts"));
            for (key, object) in &listing.objects {
                self.reconcile(&secrets, key, &object.peek());
            }
            loop {
                tokio::select! {
                    batch = changed.next() => {
                        let Ok(batch) = batch else { break };
                        for event in batch.events.iter().filter(|event| event.change != Change::Deleted) {
                            self.reconcile(&secrets, &event.key, &event.object.peek());
                        }
                    }
                    batch = accounts.next() => {
                        let Ok(batch) = batch else { break };
                        for event in batch.events.iter().filter(|event| event.change != Change::Modified) {
                            let scope = Scope { namespace: Some(event.key.namespace.clone()), ..of("secrets") };
                            for (key, object) in &self.api.store.list_now(&scope).objects {
                                self.reconcile(&secrets, key, &object.peek());
                            }
                        }
                    }
                }
            }
        }
    }

    /// Fills a Secret for a ServiceAccount that exists; deletes it when that is gone.
    fn reconcile(&self, secrets: &Resource, key: &Key, secret: &Value) {
        if secret.get("type").and_then(Value::as_str) != Some(TYPE) || metadata::is_deleting(secret) {
            return;
        }
        let Some(name) = metadata::annotation(secret, NAME) else { return };
        let account = self.api.store.get(&Key::new("serviceaccounts".into(), key.namespace.as_str(), name));
        let account = account.map(|account| Reference::to(&account.peek()));
        let stated = metadata::annotation(secret, UID).unwrap_or_default();
        if let Some(account) = account.filter(|account| stated.is_empty() || stated == account.uid) {
            return self.fill(secrets, key, secret, &account);
        }
        // Only this very Secret: another one may have replaced it. If it is already deleted, nothing is left to do.
        let options = DeleteOptions { uid: Some(metadata::uid(secret).to_owned()), ..DeleteOptions::default() };
        let _ = self.api.remove(secrets, key, &options);
    }

    fn fill(&self, secrets: &Resource, key: &Key, secret: &Value, account: &Reference) {
        let filled = |field: &str| secret.get("data").and_then(|data| data.get(field)).is_some();
        if filled("token") && filled("namespace") && filled("ca.crt") && metadata::annotation(secret, UID).is_some() {
            return;
        }
        let claims = LegacyClaims::new(&key.namespace, &key.name, account);
        let token = match self.api.authenticator.key().map(|signing| signing.sign(&claims)) {
            Some(Ok(token)) => token,
            Some(Err(error)) => return tracing::warn!(secret = %key.name, %error, "cannot make a token"),
            None => return,
        };
        change(&self.api, secrets, key, |secret| {
            let annotations = metadata::child(metadata::of(secret), "annotations");
            annotations.insert(UID.to_owned(), account.uid.as_str().into());
            let data = metadata::child(metadata::as_map(secret), "data");
            let values = [("token", &token), ("namespace", &key.namespace), ("ca.crt", &self.authority)];
            for (field, value) in values {
                data.entry(field).or_insert_with(|| STANDARD.encode(value).into());
            }
        });
    }
}
