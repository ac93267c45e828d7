//! Adoption of existing objects, and what happens to the objects of a BundleDeployment when it is deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{Enumeration, enumeration};

/// What the controller does about objects of the bundle that already exist and have another owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CollisionProtection {
    /// It refuses the release before it writes anything.
    #[default]
    Prevent,
    /// It adopts objects that no controller and no other BundleDeployment or ApplySet owns.
    IfNoController,
    /// It adopts every object.
    None,
}

impl Enumeration for CollisionProtection {
    const NAMES: &[&str] = &["Prevent", "IfNoController", "None"];
}

/// An existing object that a BundleDeployment adopts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdoptedObject {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// The kind.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// The namespace. Absent for cluster-scoped kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// The name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// The UID.
    #[schemars(length(max = 128))]
    pub uid: String,
}

/// What happens to the objects when the BundleDeployment is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deletion {
    /// Delete deletes the objects of the bundle with the BundleDeployment, in the reverse order of their application. Orphan leaves all
    /// objects in the cluster and removes the labels and owner references of Chandler. If this is not set, the objects are deleted,
    /// but those with the annotation helm.sh/resource-policy: keep are left, also when a new release no longer has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enumeration::<DeletionPolicy>")]
    pub policy: Option<DeletionPolicy>,
    /// What happens to CustomResourceDefinitions when the BundleDeployment is deleted, or when a new release no longer has
    /// them. Deleting a CRD deletes its custom resources. Keep leaves the CRDs in the cluster. Delete deletes the CRDs and
    /// every custom resource of their kinds, before the other objects of the bundle. If this is not set, the controller deletes CRDs only
    /// if no custom resource exists that is not part of the bundle. While one exists, it deletes nothing, and reports their number in the
    /// status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enumeration::<CrdDeletion>")]
    pub crds: Option<CrdDeletion>,
}

/// Whether the objects are deleted with their BundleDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    /// The objects are deleted, also those with the annotation `helm.sh/resource-policy: keep`.
    Delete,
    /// The objects stay in the cluster.
    Orphan,
}

impl Enumeration for DeletionPolicy {
    const NAMES: &[&str] = &["Delete", "Orphan"];
}

/// Whether CustomResourceDefinitions are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrdDeletion {
    /// The CRDs stay in the cluster.
    Keep,
    /// The CRDs are deleted, with all custom resources of their kinds.
    Delete,
}

impl Enumeration for CrdDeletion {
    const NAMES: &[&str] = &["Keep", "Delete"];
}
