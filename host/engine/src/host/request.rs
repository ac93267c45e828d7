//! The `request` interface: hands the request to the guest and records the facts that the guest reads.

use std::sync::Arc;

use chandler_core::{Fact, RecordedFacts, Request, Target};
use parking_lot::Mutex;

use super::State;
use crate::contract::bindings::chandler::provisioner::request::Host;

/// The facts that a guest reads. They outlive the call, also if it fails.
pub(crate) type Asked = Arc<Mutex<RecordedFacts>>;

/// The request of a call of `provision`.
pub(crate) struct Requested {
    config: String,
    target: Target,
    asked: Asked,
}

impl Requested {
    pub(crate) fn new(request: Request, asked: Asked) -> Self {
        let config = serde_json::Value::Object(request.config).to_string();
        Self { config, target: request.target, asked }
    }

    fn target(&self, fact: Fact) -> &Target {
        self.asked.lock().add(fact);
        &self.target
    }
}

/// There is no request while the guest only inspects the content.
impl Host for State {
    fn config(&mut self) -> wasmtime::Result<String> {
        Ok(self.request.as_ref().map_or_else(|| "{}".to_owned(), |request| request.config.clone()))
    }

    fn name(&mut self) -> wasmtime::Result<String> {
        Ok(self.request.as_ref().map(|request| request.target(Fact::Name).name.clone()).unwrap_or_default())
    }

    fn namespace(&mut self) -> wasmtime::Result<String> {
        let namespace = |request: &Requested| request.target(Fact::Namespace).namespace.clone();
        Ok(self.request.as_ref().map(namespace).unwrap_or_default())
    }

    fn kubernetes_version(&mut self) -> wasmtime::Result<Option<String>> {
        let version = |request: &Requested| request.target(Fact::KubernetesVersion).version().map(str::to_owned);
        Ok(self.request.as_ref().and_then(version))
    }

    fn serves(&mut self, api_version: String, kind: String) -> wasmtime::Result<Option<bool>> {
        let Some(request) = &self.request else { return Ok(None) };
        let served = request.target.serves(&api_version, &kind);
        request.target(Fact::Serves { api_version, kind });
        Ok(served)
    }

    fn api_kinds(&mut self) -> wasmtime::Result<Vec<String>> {
        let kinds = |request: &Requested| {
            let mut kinds = request.target(Fact::ApiKinds).api_kinds.clone();
            kinds.sort_unstable();
            kinds
        };
        Ok(self.request.as_ref().map(kinds).unwrap_or_default())
    }
}
