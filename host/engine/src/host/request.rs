//! The `request` interface: the request for the guest, and a record of the questions that the guest asks.

use std::sync::{Arc, Mutex, PoisonError};

use chandler_core::{Question, Questions, Request, Target};

use super::State;
use crate::contract::bindings::chandler::provisioner::request::Host;

/// The questions of the guest. They outlive the call, whatever its outcome.
pub(crate) type Asked = Arc<Mutex<Questions>>;

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

    fn target(&self, question: Question) -> &Target {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).add(question);
        &self.target
    }
}

/// Without a request (in `detect` and `config-schema`) the functions return empty values.
impl Host for State {
    fn config(&mut self) -> wasmtime::Result<String> {
        Ok(self.request.as_ref().map_or_else(|| "{}".to_owned(), |request| request.config.clone()))
    }

    fn name(&mut self) -> wasmtime::Result<String> {
        Ok(self.request.as_ref().map(|request| request.target(Question::Name).name.clone()).unwrap_or_default())
    }

    fn namespace(&mut self) -> wasmtime::Result<String> {
        let namespace = |request: &Requested| request.target(Question::Namespace).namespace.clone();
        Ok(self.request.as_ref().map(namespace).unwrap_or_default())
    }

    fn kubernetes_version(&mut self) -> wasmtime::Result<Option<String>> {
        let version = |request: &Requested| request.target(Question::KubernetesVersion).version().map(str::to_owned);
        Ok(self.request.as_ref().and_then(version))
    }

    fn serves(&mut self, api_version: String, kind: String) -> wasmtime::Result<Option<bool>> {
        let Some(request) = &self.request else { return Ok(None) };
        let served = request.target.serves(&api_version, &kind);
        request.target(Question::Serves { api_version, kind });
        Ok(served)
    }

    fn api_kinds(&mut self) -> wasmtime::Result<Vec<String>> {
        let kinds = |request: &Requested| {
            let mut kinds = request.target(Question::ApiKinds).api_kinds.clone();
            kinds.sort_unstable();
            kinds
        };
        Ok(self.request.as_ref().map(kinds).unwrap_or_default())
    }
}
