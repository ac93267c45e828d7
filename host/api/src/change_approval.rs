//! `chandler.dev/v1alpha1 ChangeApproval`: the approval of one change of one BundleDeployment.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{CustomResource, Resource as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{BundleDeployment, schema};

/// How many characters of a UID and of a digest are part of the name of an approval.
const NAMED_CHARACTERS: (usize, usize) = (8, 16);

/// The change that is approved, and the user who approves it.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "chandler.dev",
    version = "v1alpha1",
    kind = "ChangeApproval",
    plural = "changeapprovals",
    derive = "Default",
    derive = "PartialEq",
    doc = "The approval of one change of one BundleDeployment with spec.approval: Manual, or of reviewed findings about upgrades of its CRDs. `chandler approve` creates it.",
    printcolumn = r#"{"name": "BundleDeployment", "type": "string", "jsonPath": ".spec.bundleDeployment"}"#,
    printcolumn = r#"{"name": "Approved By", "type": "string", "jsonPath": ".spec.approvedBy"}"#,
    printcolumn = r#"{"name": "Change", "type": "string", "jsonPath": ".spec.change"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".spec.reason", "priority": 1}"#
)]
#[serde(rename_all = "camelCase")]
pub struct ChangeApprovalSpec {
    /// The name of the BundleDeployment.
    #[schemars(length(min = 1, max = 52))]
    pub bundle_deployment: String,
    /// The UID of the BundleDeployment. A new BundleDeployment of the same name needs a new approval.
    #[serde(rename = "bundleDeploymentUID")]
    #[schemars(length(min = 1, max = 64))]
    pub bundle_deployment_uid: String,
    /// The digest of the change, as in status.pendingChange.digest; or of the findings, as `chandler diff --findings` prints it.
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"))]
    pub change: String,
    /// The user who approves the change. An admission policy requires this to be the user who creates the ChangeApproval.
    #[schemars(length(min = 1, max = 1024))]
    pub approved_by: String,
    /// The reason for the approval, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::short_text")]
    pub reason: Option<String>,
    /// Upgrades of CustomResourceDefinitions that are allowed although they are unsafe. Each has the digest of what was reviewed:
    /// the CRD in the cluster, its new version, and the findings. If any of them changes, the upgrade is refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["crd"]))]
    pub crd_upgrades: Vec<ApprovedUpgrade>,
}

/// An unsafe upgrade of a CustomResourceDefinition that a user reviewed and approved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovedUpgrade {
    /// The name of the CustomResourceDefinition.
    #[schemars(length(min = 1, max = 253))]
    pub crd: String,
    /// The digest of the findings, as `chandler diff --findings` prints it.
    #[schemars(regex(pattern = "^sha256:[0-9a-f]{64}$"), length(max = 71))]
    pub digest: String,
}

/// The users who approved upgrades of CRDs of this BundleDeployment, by the digest of the findings.
pub fn approved_upgrades<'a>(
    approvals: impl IntoIterator<Item = &'a ChangeApproval>,
    deployment: &BundleDeployment,
) -> BTreeMap<String, String> {
    let approvals = approvals.into_iter().filter(|approval| approval.is_for(deployment));
    let upgrades = approvals.flat_map(|ChangeApproval { spec, .. }| {
        spec.crd_upgrades.iter().map(|upgrade| (upgrade.digest.clone(), spec.approved_by.clone()))
    });
    upgrades.collect()
}

impl ChangeApproval {
    /// The approval of this change by this user. Its name is derived from the BundleDeployment and the change, and it is
    /// garbage collected with the BundleDeployment. None if the BundleDeployment was not stored yet.
    pub fn of(deployment: &BundleDeployment, change: &str, approved_by: &str, reason: Option<String>) -> Option<Self> {
        let (name, uid) = (deployment.metadata.name.as_deref()?, deployment.metadata.uid.as_deref()?);
        let mut approval = Self::new(
            &name_of(name, uid, change),
            ChangeApprovalSpec {
                bundle_deployment: name.to_owned(),
                bundle_deployment_uid: uid.to_owned(),
                change: change.to_owned(),
                approved_by: approved_by.to_owned(),
                reason,
                crd_upgrades: Vec::new(),
            },
        );
        approval.metadata.owner_references = Some(vec![OwnerReference {
            api_version: BundleDeployment::api_version(&()).into_owned(),
            kind: BundleDeployment::kind(&()).into_owned(),
            name: name.to_owned(),
            uid: uid.to_owned(),
            ..OwnerReference::default()
        }]);
        Some(approval)
    }

    /// The approval of upgrades of CRDs by this user. `findings` is the digest of all their findings.
    pub fn of_upgrades(
        deployment: &BundleDeployment,
        (findings, crd_upgrades): (&str, Vec<ApprovedUpgrade>),
        approved_by: &str,
        reason: Option<String>,
    ) -> Option<Self> {
        let mut approval = Self::of(deployment, findings, approved_by, reason)?;
        approval.spec.crd_upgrades = crd_upgrades;
        Some(approval)
    }

    /// Whether this approves this change of this BundleDeployment, by UID. An approval that is being deleted approves nothing.
    pub fn approves(&self, deployment: &BundleDeployment, change: &str) -> bool {
        self.is_for(deployment) && self.spec.change == change
    }

    /// Whether this approves anything of this BundleDeployment.
    fn is_for(&self, deployment: &BundleDeployment) -> bool {
        let ChangeApprovalSpec { bundle_deployment, bundle_deployment_uid, .. } = &self.spec;
        self.metadata.deletion_timestamp.is_none()
            && deployment.metadata.name.as_ref() == Some(bundle_deployment)
            && deployment.metadata.uid.as_ref() == Some(bundle_deployment_uid)
    }
}

/// The name of an approval: the same for the same change of the same BundleDeployment.
fn name_of(name: &str, uid: &str, change: &str) -> String {
    let (of_uid, of_change) = NAMED_CHARACTERS;
    let first = |text: &str, count| text.chars().take(count).collect::<String>();
    let digest = change.split_once(':').map_or(change, |(_, hex)| hex);
    format!("{name}-{}-{}", first(uid, of_uid), first(digest, of_change))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    use serde_json::json;

    use super::*;

    fn deployment(uid: &str) -> BundleDeployment {
        let mut deployment = BundleDeployment::new("harbour", crate::BundleDeploymentSpec::default());
        deployment.metadata.uid = Some(uid.to_owned());
        deployment
    }

    #[test]
    fn an_approval_is_named_after_its_change_and_owned_by_the_bundle_deployment() {
        let uid = "6a9f6f0e-5a63-4f0b-9a0c-000000000000";
        let change = format!("sha256:{}", "0123456789abcdef".repeat(4));
        let approval = ChangeApproval::of(&deployment(uid), &change, "alice", None).unwrap();
        assert_eq!(
            serde_json::to_value(&approval).unwrap(),
            json!({
                "apiVersion": "chandler.dev/v1alpha1", "kind": "ChangeApproval",
                "metadata": {
                    "name": "harbour-6a9f6f0e-0123456789abcdef",
                    "ownerReferences": [{"apiVersion": "core.rukpak.io/v1alpha2", "kind": "BundleDeployment",
                                         "name": "harbour", "uid": uid}],
                },
                "spec": {"bundleDeployment": "harbour", "bundleDeploymentUID": uid, "change": change, "approvedBy": "alice"},
            })
        );
        let unsaved = BundleDeployment::new("harbour", crate::BundleDeploymentSpec::default());
        assert_eq!(ChangeApproval::of(&unsaved, &change, "alice", None), None);
    }

    #[test]
    fn approved_upgrades_are_those_of_one_object() {
        let upgrade = |crd: &str, digest: &str| ApprovedUpgrade { crd: crd.into(), digest: digest.into() };
        let by = |uid: &str, user: &str, upgrades| {
            ChangeApproval::of_upgrades(&deployment(uid), ("sha256:a", upgrades), user, None).unwrap()
        };
        let alice = by("1", "alice", vec![upgrade("a.example.com", "sha256:1"), upgrade("b.example.com", "sha256:2")]);
        let elsewhere = by("2", "mallory", vec![upgrade("a.example.com", "sha256:3")]);
        let mut withdrawn = by("1", "bob", vec![upgrade("a.example.com", "sha256:4")]);
        withdrawn.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let of_change = ChangeApproval::of(&deployment("1"), "sha256:5", "carol", None).unwrap();
        let found = approved_upgrades([&alice, &elsewhere, &withdrawn, &of_change], &deployment("1"));
        let expected = [("sha256:1", "alice"), ("sha256:2", "alice")];
        assert_eq!(found, expected.map(|(digest, user)| (digest.to_owned(), user.to_owned())).into());
    }

    #[test]
    fn an_approval_is_for_one_change_of_one_object() {
        let mut approval = ChangeApproval::of(&deployment("1"), "sha256:a", "alice", None).unwrap();
        assert!(approval.approves(&deployment("1"), "sha256:a"));
        assert!(!approval.approves(&deployment("1"), "sha256:b"));
        assert!(!approval.approves(&deployment("2"), "sha256:a"), "another object of the same name");
        let mut other = deployment("1");
        other.metadata.name = Some("bay".into());
        assert!(!approval.approves(&other, "sha256:a"));
        approval.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(!approval.approves(&deployment("1"), "sha256:a"), "an approval that is being deleted");
    }
}
