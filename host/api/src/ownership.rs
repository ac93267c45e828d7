//! Whose objects a BundleDeployment takes, and what becomes of its own when it goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{Enumeration, enumeration};

/// What is done about objects of the bundle that exist already and are somebody else's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum CollisionProtection {
    /// The release is refused before anything is written.
    #[default]
    Prevent,
    /// What no controller and no other BundleDeployment or ApplySet holds is taken over.
    IfNoController,
    /// Everything is taken over.
    None,
}

impl Enumeration for CollisionProtection {
    const NAMES: &[&str] = &["Prevent", "IfNoController", "None"];
}

/// An existing object that a BundleDeployment takes over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdoptedObject {
    /// Its API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Its kind.
    #[schemars(length(max = 63))]
    pub kind: String,
    /// Its namespace; none for kinds that live in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
    /// Its UID.
    #[schemars(length(max = 128))]
    pub uid: String,
}

/// What becomes of the objects when the BundleDeployment is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deletion {
    /// Delete, the default, deletes the objects of the bundle with the BundleDeployment, in the reverse of the order in which
    /// they were applied. Orphan leaves them all where they are and takes our labels and references off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enumeration::<DeletionPolicy>")]
    pub policy: Option<DeletionPolicy>,
    /// What becomes of CustomResourceDefinitions that are deleted with the BundleDeployment, or that a new release no longer
    /// has. Custom resources cannot be without their CRD. Keep leaves the CRDs where they are. Delete deletes
    /// them, and every custom resource of their kinds with them, while the other objects of the bundle are still there. Where
    /// this is not set they are deleted as long as no custom resource exists beyond those of the bundle; while one exists,
    /// the deletion waits before anything is deleted, and the status counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "enumeration::<CrdDeletion>")]
    pub crds: Option<CrdDeletion>,
}

/// Whether objects go with their BundleDeployment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DeletionPolicy {
    /// They do.
    #[default]
    Delete,
    /// They do not.
    Orphan,
}

impl Enumeration for DeletionPolicy {
    const NAMES: &[&str] = &["Delete", "Orphan"];
}

/// Whether CustomResourceDefinitions go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CrdDeletion {
    /// They do not.
    Keep,
    /// They do, with all custom resources of their kinds.
    Delete,
}

impl Enumeration for CrdDeletion {
    const NAMES: &[&str] = &["Keep", "Delete"];
}
