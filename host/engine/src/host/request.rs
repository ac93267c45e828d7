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
}

impl Requested {
    pub(crate) fn new(request: Request) -> Self {
        let config = serde_json::Value::Object(request.config).to_string();
        Self { config, target: request.target }
    }
}

impl State {
    /// The target, of which the guest reads a fact. None while the guest only inspects the content.
    fn target(&self, fact: Fact) -> Option<&Target> {
        let request = self.request.as_ref()?;
        self.asked.lock().add(fact);
        Some(&request.target)
    }
}

impl Host for State {
    fn config(&mut self) -> wasmtime::Result<String> {
        Ok(self.request.as_ref().map_or_else(|| "{}".to_owned(), |request| request.config.clone()))
    }

    fn name(&mut self) -> wasmtime::Result<String> {
        Ok(self.target(Fact::Name).map(|target| target.name.clone()).unwrap_or_default())
    }

    fn namespace(&mut self) -> wasmtime::Result<String> {
        Ok(self.target(Fact::Namespace).map(|target| target.namespace.clone()).unwrap_or_default())
    }

    fn kubernetes_version(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(self.target(Fact::KubernetesVersion).and_then(Target::version).map(str::to_owned))
    }

    fn serves(&mut self, api_version: String, kind: String) -> wasmtime::Result<Option<bool>> {
        let fact = Fact::Serves { api_version: api_version.clone(), kind: kind.clone() };
        Ok(self.target(fact).and_then(|target| target.serves(&api_version, &kind)))
    }

    fn api_kinds(&mut self) -> wasmtime::Result<Vec<String>> {
        let mut kinds = self.target(Fact::ApiKinds).map(|target| target.api_kinds.clone()).unwrap_or_default();
        kinds.sort_unstable();
        Ok(kinds)
    }

    /// Answered and recorded in every call: the answer depends on the host alone.
    fn supports(&mut self, feature: String) -> wasmtime::Result<bool> {
        let (supported, fact) = Fact::supports(feature);
        if let Some(fact) = fact {
            self.asked.lock().add(fact);
        }
        Ok(supported)
    }
}
