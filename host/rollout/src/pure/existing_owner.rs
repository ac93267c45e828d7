//! The existing owner of an object that does not belong to the owner of the release, and when the object may be adopted.

use std::{collections::BTreeSet, fmt};

use chandler_core::ObjectKey;
use serde::Serialize;

use crate::pure::policy::CollisionProtection;

/// The existing owner of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "by", rename_all = "camelCase")]
pub enum ExistingOwner {
    /// An owner reference names this object as its controller.
    Controller {
        /// The kind of the controller.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An owner reference names an object of the owner's kind and name that is gone or about to be. The garbage collector
    /// deletes the object.
    StaleOwner {
        /// The kind of the owner.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An earlier owner of this kind and name orphaned it on purpose, and no owner has claimed it since.
    LeftBehind {
        /// The kind of the owner.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It carries the labels of the owner, but the owner's record does not list it.
    Unrecorded {
        /// The kind of the owner.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It carries the labels of another owner's ApplySet, and has no controller.
    Member {
        /// The kind of the parent of that set.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It is a member of an ApplySet of another tool.
    ApplySet {
        /// The identifier of the set.
        id: String,
    },
    /// It is part of a Helm release.
    HelmRelease {
        /// The namespace of the release.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// No owner claims it; this field manager was the first to write it.
    Manager {
        /// The name of the field manager.
        name: String,
    },
    /// No owner claims it, and its creator is unknown.
    Unknown,
}

impl ExistingOwner {
    /// Whether an owner reference names a controller.
    pub fn is_controller(&self) -> bool {
        matches!(self, Self::Controller { .. } | Self::StaleOwner { .. })
    }

    /// Whether no controller and no other ApplySet claims the object, so that it can be adopted without taking it from an
    /// active owner.
    pub fn is_unclaimed(&self) -> bool {
        matches!(
            self,
            Self::LeftBehind { .. }
                | Self::Unrecorded { .. }
                | Self::HelmRelease { .. }
                | Self::Manager { .. }
                | Self::Unknown
        )
    }

    /// Whether an object of this owner may be adopted.
    pub fn yields_to(&self, protection: CollisionProtection) -> bool {
        match protection {
            CollisionProtection::Prevent => matches!(self, Self::LeftBehind { .. }),
            CollisionProtection::IfNoController => self.is_unclaimed(),
            CollisionProtection::None => true,
        }
    }

    /// The name of the existing owner, if it is another object of the owner's kind.
    pub(crate) fn sibling<'a>(&'a self, owner_kind: &str) -> Option<&'a str> {
        match self {
            Self::Controller { kind, name } | Self::Member { kind, name } if kind == owner_kind => Some(name),
            _ => None,
        }
    }
}

impl fmt::Display for ExistingOwner {
    /// A phrase with the object as its subject, such as `is controlled by Deployment x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller { kind, name } => write!(f, "is controlled by {kind} {name}"),
            Self::StaleOwner { kind, name } => {
                write!(f, "is controlled by a previous {kind} {name}, and will be garbage collected")
            }
            Self::LeftBehind { kind, name } => write!(f, "was orphaned by a previous {kind} {name}"),
            Self::Unrecorded { kind, name } => {
                write!(f, "carries the labels of {kind} {name}, which has no record of creating or adopting it")
            }
            Self::Member { kind, name } => write!(f, "belongs to {kind} {name}"),
            Self::ApplySet { id } => write!(f, "belongs to the ApplySet {id}"),
            Self::HelmRelease { namespace, name } => write!(f, "belongs to the Helm release {namespace}/{name}"),
            Self::Manager { name } => write!(f, "was created by {name}"),
            Self::Unknown => f.write_str("was not created by Chandler"),
        }
    }
}

/// An object that exists and belongs to another owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The object.
    pub object: ObjectKey,
    /// Its owner.
    pub existing_owner: ExistingOwner,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} already exists and {}", self.object, self.existing_owner)
    }
}

/// Objects that block a release because they belong to other owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collisions {
    /// The kind of the owner of the release.
    pub owner_kind: String,
    /// Its name.
    pub owner: String,
    /// The objects.
    pub found: Vec<Collision>,
    /// Whether the owner had one of them, and another owner of its kind took it.
    pub lost: bool,
}

/// The number of collisions that a message lists.
const LISTED: usize = 10;
/// The number of other owners that the advice names.
const NAMED: usize = 3;

impl fmt::Display for Collisions {
    /// The first few objects, one per line, and then advice for each type of existing owner.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for collision in self.found.iter().take(LISTED) {
            writeln!(f, "{collision}")?;
        }
        if self.found.len() > LISTED {
            writeln!(f, "and {} more", self.found.len() - LISTED)?;
        }
        f.write_str(&self.advice().join("\n"))
    }
}

impl Collisions {
    /// Advice, one line for each type of existing owner.
    fn advice(&self) -> Vec<String> {
        let existing_owners = || self.found.iter().map(|collision| &collision.existing_owner);
        let (owner, kind) = (&self.owner, &self.owner_kind);
        let mut lines = Vec::new();
        let siblings: BTreeSet<&str> =
            existing_owners().filter_map(|existing_owner| existing_owner.sibling(kind)).collect();
        if !siblings.is_empty() {
            let mut names = siblings.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            if siblings.len() > NAMED {
                names.push_str(", …");
            }
            lines.push(format!(
                "an object can belong to only one {kind}: remove it from this bundle or from the bundle of {names}, or move it here \
                 with `chandler adopt {owner} --force`"
            ));
        }
        if self.lost {
            lines.push(format!(
                "an object that another {kind} took is not taken back, or both would take it for ever: let one of them no longer ask for it \
                 (spec.adopt, spec.collisionProtection); to move it here once more, remove its entry from spec.adopt, and add it again"
            ));
        }
        if existing_owners().any(ExistingOwner::is_unclaimed) {
            lines.push(format!(
                "adopt objects without a controller with `chandler adopt {owner}` or spec.collisionProtection: IfNoController, \
                 delete them, or remove them from the bundle"
            ));
        }
        if existing_owners().any(|existing_owner| matches!(existing_owner, ExistingOwner::StaleOwner { .. })) {
            lines.push(
                "objects of a previous owner of this name are being deleted; the rollout then continues by itself"
                    .to_owned(),
            );
        }
        let others = existing_owners().any(|existing_owner| {
            existing_owner.sibling(kind).is_none()
                && matches!(
                    existing_owner,
                    ExistingOwner::Controller { .. } | ExistingOwner::Member { .. } | ExistingOwner::ApplySet { .. }
                )
        });
        if others {
            lines.push(format!(
                "another controller or ApplySet will restore its objects: remove them from the bundle, or take them over with \
                 `chandler adopt {owner} --force` or spec.collisionProtection: None"
            ));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    fn existing_owners() -> Vec<ExistingOwner> {
        vec![
            ExistingOwner::Controller { kind: text("Deployment"), name: text("d") },
            ExistingOwner::StaleOwner { kind: text("BundleDeployment"), name: text("a") },
            ExistingOwner::LeftBehind { kind: text("BundleDeployment"), name: text("a") },
            ExistingOwner::Unrecorded { kind: text("BundleDeployment"), name: text("a") },
            ExistingOwner::Member { kind: text("BundleDeployment"), name: text("b") },
            ExistingOwner::ApplySet { id: text("applyset-x-v1") },
            ExistingOwner::HelmRelease { namespace: text("n"), name: text("r") },
            ExistingOwner::Manager { name: text("kubectl-create") },
            ExistingOwner::Unknown,
        ]
    }

    fn collisions(existing_owners: impl IntoIterator<Item = ExistingOwner>) -> Collisions {
        let object = |number: usize| ObjectKey {
            group: String::new(),
            version: text("v1"),
            kind: text("ConfigMap"),
            namespace: Some(text("n")),
            name: format!("x{number}"),
        };
        let found = existing_owners.into_iter().enumerate();
        let found =
            found.map(|(number, existing_owner)| Collision { object: object(number), existing_owner }).collect();
        Collisions { owner_kind: text("BundleDeployment"), owner: text("a"), found, lost: false }
    }

    #[test]
    fn if_no_controller_adopts_only_unclaimed_objects() {
        let yielding = |protection| -> Vec<bool> {
            existing_owners().iter().map(|existing_owner| existing_owner.yields_to(protection)).collect()
        };
        let only_left = [false, false, true, false, false, false, false, false, false];
        assert_eq!(yielding(CollisionProtection::Prevent), only_left);
        let unclaimed = [false, false, true, true, false, false, true, true, true];
        assert_eq!(yielding(CollisionProtection::IfNoController), unclaimed);
        assert_eq!(yielding(CollisionProtection::None), [true; 9]);
        let controlled: Vec<bool> = existing_owners().iter().map(ExistingOwner::is_controller).collect();
        assert_eq!(controlled, [true, true, false, false, false, false, false, false, false]);
    }

    #[test]
    fn a_message_names_the_existing_owner_and_gives_advice() {
        insta::assert_snapshot!(collisions(existing_owners()), @r"
        ConfigMap n/x0 already exists and is controlled by Deployment d
        ConfigMap n/x1 already exists and is controlled by a previous BundleDeployment a, and will be garbage collected
        ConfigMap n/x2 already exists and was orphaned by a previous BundleDeployment a
        ConfigMap n/x3 already exists and carries the labels of BundleDeployment a, which has no record of creating or adopting it
        ConfigMap n/x4 already exists and belongs to BundleDeployment b
        ConfigMap n/x5 already exists and belongs to the ApplySet applyset-x-v1
        ConfigMap n/x6 already exists and belongs to the Helm release n/r
        ConfigMap n/x7 already exists and was created by kubectl-create
        ConfigMap n/x8 already exists and was not created by Chandler
        an object can belong to only one BundleDeployment: remove it from this bundle or from the bundle of b, or move it here with `chandler adopt a --force`
        adopt objects without a controller with `chandler adopt a` or spec.collisionProtection: IfNoController, delete them, or remove them from the bundle
        objects of a previous owner of this name are being deleted; the rollout then continues by itself
        another controller or ApplySet will restore its objects: remove them from the bundle, or take them over with `chandler adopt a --force` or spec.collisionProtection: None
        ");
        insta::assert_snapshot!(collisions([ExistingOwner::Manager { name: text("kubectl") }]), @r"
        ConfigMap n/x0 already exists and was created by kubectl
        adopt objects without a controller with `chandler adopt a` or spec.collisionProtection: IfNoController, delete them, or remove them from the bundle
        ");
        let sibling =
            |number: usize| ExistingOwner::Controller { kind: text("BundleDeployment"), name: format!("b{number}") };
        let many = collisions((0..25).map(sibling)).to_string();
        let lines: Vec<&str> = many.lines().collect();
        assert_eq!((lines.len(), lines[10]), (12, "and 15 more"));
        assert!(lines[11].contains("or from the bundle of b0, b1, b10, …, or move it here"), "{many}");
    }
}
