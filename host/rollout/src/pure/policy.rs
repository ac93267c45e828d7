//! How an owner treats objects: those of others that are in its way, and its own that are not wanted any more.

/// What is done about objects of a release that exist already and are somebody else's. The names are those of the operators
/// of OLM v1 (`operator-controller`, `boxcutter`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CollisionProtection {
    /// The release is refused.
    #[default]
    Prevent,
    /// What no controller and no other ApplySet holds is taken over, whatever made it.
    IfNoController,
    /// Everything is taken over; a controller is released first.
    None,
}

/// What becomes of the objects of an owner that is deleted, and of CRDs that a release no longer has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deletion {
    /// Whether all objects stay when the owner is deleted.
    pub orphan: bool,
    /// What becomes of CustomResourceDefinitions.
    pub crds: CrdPolicy,
}

/// What becomes of CustomResourceDefinitions, and with them of all custom resources of their kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CrdPolicy {
    /// They are deleted as long as no custom resource of somebody else exists, and else stay.
    #[default]
    WhileUnused,
    /// They stay, and belong to nobody then.
    Keep,
    /// They are deleted with their custom resources.
    Delete,
}
