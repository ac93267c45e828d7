//! Checks whether an object in the cluster trusts an authority.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use crate::{
    certificate::Certificate,
    declaration::{Declarations, Target, client_configurations},
    material::Material,
};

impl Declarations {
    /// Whether an object in the cluster trusts the certificate that `material` serves, which has index `certificate`:
    /// every client configuration that refers to a Service of the certificate must contain the authority.
    ///
    /// An object without such a reference trusts it trivially.
    pub fn trusts(&self, target: &Target, live: &Value, certificate: usize, material: &Material) -> bool {
        let Some(configurations) = live.as_object().and_then(|live| client_configurations(&target.object, live)) else {
            return true;
        };
        let mut concerned = configurations
            .into_iter()
            .filter(|configuration| self.certificate_of(&configuration.service) == Some(certificate));
        concerned.all(|configuration| {
            let bundle = live.pointer(&configuration.pointer).and_then(|place| place.get("caBundle")?.as_str());
            let bundle = bundle.and_then(|bundle| STANDARD.decode(bundle).ok()).unwrap_or_default();
            Certificate::read_all(&bundle).contains(&material.served.authority)
        })
    }
}
