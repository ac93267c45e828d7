//! The policies of an owner for objects of other owners that are in its way, and for its own objects that are no longer wanted.
//! Pure.

/// How objects of a release that exist and belong to another owner are treated. The names come from OLM v1 (`operator-controller`,
/// `boxcutter`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CollisionProtection {
    /// The release is refused.
    #[default]
    Prevent,
    /// Objects that no controller and no other ApplySet claims are adopted, regardless of who created them.
    IfNoController,
    /// All objects are adopted. The reference to another controller is removed first.
    None,
}

/// What happens to the objects of an owner that is deleted, and to objects that a release no longer contains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Whether all objects are orphaned when the owner is deleted.
    pub orphan: bool,
    /// Whether objects are deleted that have the annotation `helm.sh/resource-policy: keep`. They are orphaned otherwise.
    pub delete_kept: bool,
    /// What happens to CustomResourceDefinitions.
    pub crds: CrdPolicy,
}

/// What happens to CustomResourceDefinitions, and with them to all custom resources of their kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrdPolicy {
    /// They are deleted if no custom resource of another user exists, and kept otherwise.
    #[default]
    WhileUnused,
    /// They are orphaned.
    Keep,
    /// They are deleted with their custom resources.
    Delete,
}
