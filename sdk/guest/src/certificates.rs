//! Annotations that request serving certificates.
//!
//! A provisioner never sees a key. If the API server calls a program of the bundle over TLS, as for webhooks and
//! aggregated APIs, two annotations make the host issue the certificate, renew it in time, and set the trusted CAs in
//! the API server:
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
//! An inconsistent declaration makes the host refuse the release: an annotation on another kind, [`INJECT_CA`] on an
//! object that names no Service with [`SERVING_SECRET`], or a Secret that the provisioner emits itself.

/// On a Service: the name of the Secret, in the Service's namespace, that the host fills with `tls.crt`, `tls.key`, and
/// the trusted CAs in `ca.crt`. Other entries belong to the host.
///
/// The certificate is for `SERVICE.NAMESPACE`, `SERVICE.NAMESPACE.svc` and `SERVICE.NAMESPACE.svc.cluster.local`.
/// Several Services of one namespace may share a Secret; its certificate is then for all of them.
pub const SERVING_SECRET: &str = "certificates.chandler.dev/serving-secret";

/// On a Service with [`SERVING_SECRET`]: further names of its certificate, with commas between them. It is then also for clients. At most 50 DNS
/// names, of which the first label may be `*`, and IP addresses.
pub const PEER_NAMES: &str = "certificates.chandler.dev/peer-names";

/// On a webhook configuration, a CustomResourceDefinition with a conversion webhook, or an APIService: with `true` the
/// host sets `caBundle` wherever the object names a Service with [`SERVING_SECRET`].
pub const INJECT_CA: &str = "certificates.chandler.dev/inject-ca";

/// On a workload: with `true` the host restarts its pods whenever a certificate that they mount is rotated. Programs
/// that reload their certificate when the file changes, such as those built on controller-runtime, do not need it.
pub const RESTART_ON_ROTATION: &str = "certificates.chandler.dev/restart-on-rotation";
