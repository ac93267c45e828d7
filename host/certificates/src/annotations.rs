//! How objects are marked, by provisioners and by administrators.
//!
//! `chandler_sdk::certificates` holds the names that provisioners use.

/// On a Service: the name of the Secret, in the Service's namespace, that the host fills with a certificate for it. Several
/// Services of one namespace may share a Secret.
pub const SERVING_SECRET: &str = "certificates.chandler.dev/serving-secret";

/// On a webhook configuration, a CustomResourceDefinition or an APIService: `true` has the host write `caBundle` wherever
/// the object names a Service with [`SERVING_SECRET`].
pub const INJECT_CA: &str = "certificates.chandler.dev/inject-ca";

/// On a workload: `true` has its pods replaced when a certificate of theirs is. Only programs that read their certificate
/// once, when they start, need this.
pub const RESTART: &str = "certificates.chandler.dev/restart-on-rotation";

/// On the pods of such a workload: the digest of the certificates that they serve with.
pub const SERVING_DIGEST: &str = "certificates.chandler.dev/serving-digest";

/// On a BundleDeployment: whenever its value becomes another one, its certificates are replaced. The time, by convention.
pub const ROTATE: &str = "certificates.chandler.dev/rotate-requested-at";

/// On a Secret of the host: the digest of the last request to replace its certificate that was heeded.
pub const REQUEST: &str = "certificates.chandler.dev/rotation-request";

/// On a Secret of the host: when the certificate that is served ends, for humans.
pub const NOT_AFTER: &str = "certificates.chandler.dev/not-after";

/// On a Secret of the host: from when on its certificate is replaced, for humans.
pub const RENEW_AFTER: &str = "certificates.chandler.dev/renew-after";
