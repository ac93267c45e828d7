//! The annotations that provisioners and administrators set.
//!
//! `chandler_sdk::certificates` defines the names that provisioners use.

/// On a Service: the name of a Secret in the Service's namespace, into which Chandler writes a certificate for the
/// Service. Several Services of one namespace may share a Secret.
pub const SERVING_SECRET: &str = "certificates.chandler.dev/serving-secret";

/// On a Service with [`SERVING_SECRET`]: further names of its certificate, separated by commas, which is then also for clients, as the certificates
/// are that charts make. A name is a DNS name, whose first label may be `*`, or an IP address.
pub const PEER_NAMES: &str = "certificates.chandler.dev/peer-names";

/// On a webhook configuration, a CustomResourceDefinition or an APIService: with `true`, Chandler writes `caBundle`
/// wherever the object refers to a Service with [`SERVING_SECRET`].
pub const INJECT_CA: &str = "certificates.chandler.dev/inject-ca";

/// On a workload: with `true`, its Pods are replaced when one of their certificates changes. Only programs that read
/// their certificate once, at startup, need this.
pub const RESTART: &str = "certificates.chandler.dev/restart-on-rotation";

/// On the Pods of such a workload: the digest of the certificates that they mount.
pub const SERVING_DIGEST: &str = "certificates.chandler.dev/serving-digest";

/// On a BundleDeployment: whenever the value changes, its certificates are replaced. By convention a timestamp.
pub const ROTATE: &str = "certificates.chandler.dev/rotate-requested-at";

/// On a Secret with a certificate: the digest of the last rotation request that was handled.
pub const REQUEST: &str = "certificates.chandler.dev/rotation-request";

/// On a Secret with a certificate: when the served certificate expires; informational.
pub const NOT_AFTER: &str = "certificates.chandler.dev/not-after";

/// On a Secret with a certificate: when the certificate will be replaced; informational.
pub const RENEW_AFTER: &str = "certificates.chandler.dev/renew-after";
