//! Whose an object is that is not the owner's, and when it may be taken over.

use std::{collections::BTreeSet, fmt};

use chandler_core::ObjectKey;
use serde::Serialize;

use crate::pure::policy::CollisionProtection;

/// Whose an object is.
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
    /// The same for an object of the owner's kind and name that is gone, or about to be. The garbage collector takes it.
    StaleOwner {
        /// The kind of the owner.
        kind: String,
        /// Its name.
        name: String,
    },
    /// An earlier owner of this kind and name left it behind on purpose, and nobody has claimed it since.
    LeftBehind {
        /// The kind of the owner.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It carries the owner's own marks, but the record of what the owner created or adopted does not hold it.
    Unrecorded {
        /// The kind of the owner.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It carries the labels of another one's ApplySet, and nobody controls it.
    Member {
        /// The kind of the parent of that set.
        kind: String,
        /// Its name.
        name: String,
    },
    /// It is a member of an ApplySet that somebody else keeps.
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
    /// Nobody claims it; this field manager was the first one to write it.
    Manager {
        /// The name of the field manager.
        name: String,
    },
    /// Nobody claims it, and nothing tells who made it.
    Unknown,
}

impl ExistingOwner {
    /// Whether an owner reference makes somebody its controller.
    pub fn is_controller(&self) -> bool {
        matches!(self, Self::Controller { .. } | Self::StaleOwner { .. })
    }

    /// Whether nobody claims it in a way that others have to heed, so that it can be taken over without taking it away.
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

    /// Whether what it holds may be taken over.
    pub fn yields_to(&self, protection: CollisionProtection) -> bool {
        match protection {
            CollisionProtection::Prevent => matches!(self, Self::LeftBehind { .. }),
            CollisionProtection::IfNoController => self.is_unclaimed(),
            CollisionProtection::None => true,
        }
    }

    /// Another object of the owner's kind, where it is one that holds it.
    fn sibling<'a>(&'a self, owner_kind: &str) -> Option<&'a str> {
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
                write!(f, "is controlled by an earlier {kind} {name}, and goes with it")
            }
            Self::LeftBehind { kind, name } => write!(f, "was left behind by an earlier {kind} {name}"),
            Self::Unrecorded { kind, name } => {
                write!(f, "carries the marks of {kind} {name}, which has no record of having created or adopted it")
            }
            Self::Member { kind, name } => write!(f, "belongs to {kind} {name}"),
            Self::ApplySet { id } => write!(f, "belongs to the ApplySet {id}"),
            Self::HelmRelease { namespace, name } => write!(f, "belongs to the Helm release {namespace}/{name}"),
            Self::Manager { name } => write!(f, "was made by {name}"),
            Self::Unknown => f.write_str("was not made by Chandler"),
        }
    }
}

/// An object that exists already and belongs to somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    /// The object.
    pub object: ObjectKey,
    /// Whose it is.
    pub existing_owner: ExistingOwner,
}

impl fmt::Display for Collision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} already exists and {}", self.object, self.existing_owner)
    }
}

/// Objects of a release that stop it because they are somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collisions {
    /// The kind of the owner of the release.
    pub owner_kind: String,
    /// Its name.
    pub owner: String,
    /// The objects.
    pub found: Vec<Collision>,
}

/// How many collisions a message lists.
const LISTED: usize = 10;
/// How many other owners a message names in what it advises.
const NAMED: usize = 3;

impl fmt::Display for Collisions {
    /// The first few objects, one in a line, and then for each sort of holder what can be done.
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
    /// What can be done, one line for each sort of holder.
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
                "one object belongs to one {kind}: leave it out of this bundle or out of that of {names}, or move it here: \
                 `chandler adopt {owner} --force`"
            ));
        }
        if existing_owners().any(ExistingOwner::is_unclaimed) {
            lines.push(format!(
                "what nobody controls is taken over by `chandler adopt {owner}` or with spec.collisionProtection: \
                 IfNoController; or delete it, or leave it out of the bundle"
            ));
        }
        if existing_owners().any(|existing_owner| matches!(existing_owner, ExistingOwner::StaleOwner { .. })) {
            lines
                .push("what an earlier owner of this name left is about to go; this then goes on by itself".to_owned());
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
                "what another controller or ApplySet holds, it will put back: leave it out of the bundle, or take it away \
                 from there: `chandler adopt {owner} --force`, or spec.collisionProtection: None"
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
        Collisions { owner_kind: text("BundleDeployment"), owner: text("a"), found }
    }

    #[test]
    fn only_what_nobody_claims_yields_by_half() {
        let yielding = |protection| -> Vec<bool> {
            existing_owners().iter().map(|existing_owner| existing_owner.yields_to(protection)).collect()
        };
        let only_left = [false, false, true, false, false, false, false, false, false];
        assert_eq!(yielding(CollisionProtection::Prevent), only_left);
        let unclaimed = [false, false, true, true, false, false, true, true, true];
        assert_eq!(yielding(CollisionProtection::IfNoController), unclaimed);
        assert_eq!(yielding(CollisionProtection::None), [true; 9]);
    }

    #[test]
    fn a_message_names_the_other_owner_and_the_ways_out() {
        insta::assert_snapshot!(collisions(existing_owners()), @r"
        ConfigMap n/x0 already exists and is controlled by Deployment d
        ConfigMap n/x1 already exists and is controlled by an earlier BundleDeployment a, and goes with it
        ConfigMap n/x2 already exists and was left behind by an earlier BundleDeployment a
        ConfigMap n/x3 already exists and carries the marks of BundleDeployment a, which has no record of having created or adopted it
        ConfigMap n/x4 already exists and belongs to BundleDeployment b
        ConfigMap n/x5 already exists and belongs to the ApplySet applyset-x-v1
        ConfigMap n/x6 already exists and belongs to the Helm release n/r
        ConfigMap n/x7 already exists and was made by kubectl-create
        ConfigMap n/x8 already exists and was not made by Chandler
        one object belongs to one BundleDeployment: leave it out of this bundle or out of that of b, or move it here: `chandler adopt a --force`
        what nobody controls is taken over by `chandler adopt a` or with spec.collisionProtection: IfNoController; or delete it, or leave it out of the bundle
        what an earlier owner of this name left is about to go; this then goes on by itself
        what another controller or ApplySet holds, it will put back: leave it out of the bundle, or take it away from there: `chandler adopt a --force`, or spec.collisionProtection: None
        ");
        insta::assert_snapshot!(collisions([ExistingOwner::Manager { name: text("kubectl") }]), @r"
        ConfigMap n/x0 already exists and was made by kubectl
        what nobody controls is taken over by `chandler adopt a` or with spec.collisionProtection: IfNoController; or delete it, or leave it out of the bundle
        ");
        let sibling =
            |number: usize| ExistingOwner::Controller { kind: text("BundleDeployment"), name: format!("b{number}") };
        let many = collisions((0..25).map(sibling)).to_string();
        let lines: Vec<&str> = many.lines().collect();
        assert_eq!((lines.len(), lines[10]), (12, "and 15 more"));
        assert!(lines[11].contains("or out of that of b0, b1, b10, …, or move it here"), "{many}");
    }
}
