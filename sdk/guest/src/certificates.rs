//! How objects are marked that need serving certificates.
//!
//! A provisioner never sees a key. Where the API server calls a program of the bundle by TLS, as it does webhooks and
//! aggregated APIs, two annotations have the host issue the certificate, renew it in time, and tell the API server whom to
//! trust:
//!
//! ```
//! use chandler_sdk::certificates::{INJECT_CA, SERVING_SECRET};
//! use serde_json::json;
//!
//! // The host fills the Secret `harbour-tls`; mount it into the pods behind the Service.
//! let service = json!({
//!     "apiVersion": "v1",
//!     "kind": "Service",
//!     "metadata": {"name": "harbour", "annotations": {SERVING_SECRET: "harbour-tls"}},
//! });
//! // The host writes `caBundle` wherever this names the Service.
//! let webhooks = json!({
//!     "apiVersion": "admissionregistration.k8s.io/v1",
//!     "kind": "ValidatingWebhookConfiguration",
//!     "metadata": {"name": "harbour", "annotations": {INJECT_CA: "true"}},
//!     "webhooks": [{
//!         "name": "ships.example.com",
//!         "clientConfig": {"service": {"namespace": "port", "name": "harbour"}},
//!     }],
//! });
//! # assert_eq!(service["metadata"]["annotations"]["certificates.chandler.dev/serving-secret"], "harbour-tls");
//! # assert_eq!(webhooks["metadata"]["annotations"]["certificates.chandler.dev/inject-ca"], "true");
//! ```
//!
//! A declaration that leads nowhere has the release refused: a mark on another kind, an object that is to be told about a
//! Service without [`SERVING_SECRET`], or a Secret that the provisioner emits itself.

/// On a Service: the name of the Secret, in the Service's namespace, that the host fills: with `tls.crt`, `tls.key`, and the
/// authorities to trust in `ca.crt`. Other entries are the host's own.
///
/// The certificate is for `SERVICE.NAMESPACE`, `SERVICE.NAMESPACE.svc` and `SERVICE.NAMESPACE.svc.cluster.local`. Several
/// Services of one namespace may share a Secret; then it is for all of them.
pub const SERVING_SECRET: &str = "certificates.chandler.dev/serving-secret";

/// On a webhook configuration, a CustomResourceDefinition with a conversion webhook, or an APIService: `true` has the host
/// write `caBundle` wherever the object names a Service with [`SERVING_SECRET`].
pub const INJECT_CA: &str = "certificates.chandler.dev/inject-ca";

/// On a workload: `true` has its pods replaced whenever a certificate that they mount is. Programs that read their
/// certificate again when the file changes, as those built on controller-runtime do, need it not.
pub const RESTART_ON_ROTATION: &str = "certificates.chandler.dev/restart-on-rotation";
