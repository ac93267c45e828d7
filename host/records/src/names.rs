//! The names and labels of the Secrets. Pure.

use std::collections::BTreeMap;

use chandler_core::Digest;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sha2::{Digest as _, Sha256};

/// The type of Secrets with records.
pub const RECORD_TYPE: &str = "chandler.dev/record";
/// The type of Secrets with releases.
pub const RELEASE_TYPE: &str = "chandler.dev/release";
/// The label of all Secrets that the controller owns, and its value.
pub const MANAGED_BY: (&str, &str) = ("app.kubernetes.io/managed-by", "chandler");

/// The label that distinguishes records from releases.
const COMPONENT: &str = "app.kubernetes.io/component";
/// The annotation with the name of the BundleDeployment; informational, and an annotation because a label is limited to
/// 63 characters.
const DEPLOYMENT: &str = "chandler.dev/bundledeployment";

/// The label with a hash of the name of the BundleDeployment, by which its Secrets are listed.
const DEPLOYMENT_HASH: &str = "chandler.dev/bundledeployment-hash";

/// The hexadecimal digits of a hash in a name or a label: 96 bits.
const HASH_DIGITS: usize = 24;

fn hash(parts: &[&str]) -> String {
    let hash = hex::encode(Sha256::digest(parts.join("\n").as_bytes()));
    hash.chars().take(HASH_DIGITS).collect()
}

/// The name of the record for all successive BundleDeployments of this name.
pub(crate) fn record(deployment: &str) -> String {
    format!("record-{}", hash(&[deployment]))
}

/// The name of one part of a release.
pub(crate) fn release(owner_uid: &str, digest: &Digest, part: usize) -> String {
    format!("release-{}-{part}", hash(&[owner_uid, digest.as_str()]))
}

/// The label value of records.
pub(crate) const RECORD: &str = "record";
/// The label value of releases.
pub(crate) const RELEASE: &str = "release";

/// The label selector for records or releases.
pub(crate) fn selector(component: &str) -> String {
    format!("{}={},{COMPONENT}={component}", MANAGED_BY.0, MANAGED_BY.1)
}

/// The label selector for the records or releases of BundleDeployments of this name. Others may have the same hash.
pub(crate) fn selector_of(component: &str, deployment: &str) -> String {
    format!("{},{DEPLOYMENT_HASH}={}", selector(component), hash(&[deployment]))
}

/// The metadata of a Secret for a BundleDeployment.
pub(crate) fn metadata(name: String, component: &str, deployment: &str) -> ObjectMeta {
    let hash = hash(&[deployment]);
    let labels = [MANAGED_BY, (COMPONENT, component), (DEPLOYMENT_HASH, &hash)];
    let labels = labels.map(|(name, text)| (name.to_owned(), text.to_owned()));
    ObjectMeta {
        name: Some(name),
        labels: Some(BTreeMap::from(labels)),
        annotations: Some(BTreeMap::from([(DEPLOYMENT.to_owned(), deployment.to_owned())])),
        ..ObjectMeta::default()
    }
}

/// The name of the BundleDeployment that a Secret belongs to.
pub(crate) fn deployment(metadata: &ObjectMeta) -> Option<&str> {
    metadata.annotations.as_ref()?.get(DEPLOYMENT).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_valid_for_any_deployment_name() {
        let digest = Digest::of(b"x");
        for deployment in ["a", &"long.".repeat(50)] {
            for name in [record(deployment), release(deployment, &digest, 12)] {
                assert!(
                    name.len() < 63 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'),
                    "{name}"
                );
            }
        }
        assert_ne!(record("a"), record("b"));
        assert_ne!(release("u", &digest, 0), release("v", &digest, 0));
    }
}
