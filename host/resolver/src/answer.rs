//! An answer as plain data.

use serde::{Deserialize, Serialize};

use crate::explain::Explanation;

/// A decision, or the explanation why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// What to install.
    Decision(Decision),
    /// Why nothing fits.
    Refusal(Explanation),
}

impl Answer {
    /// The decision, if there is one.
    pub fn decision(&self) -> Option<&Decision> {
        match self {
            Self::Decision(decision) => Some(decision),
            Self::Refusal(_) => None,
        }
    }

    /// The explanation, if there is no decision.
    pub fn refusal(&self) -> Option<&Explanation> {
        match self {
            Self::Decision(_) => None,
            Self::Refusal(explanation) => Some(explanation),
        }
    }
}

/// The chosen set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// The members by package, installed ones too.
    pub members: Vec<Member>,
    /// Dependencies that the policy only reports. They are not members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Member>,
    /// Installed packages that were needed once, and that nothing needs now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unneeded: Vec<String>,
    /// What the user should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Decision {
    /// The member of a package.
    pub fn member(&self, package: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.package == package)
    }
}

/// A chosen bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// The package.
    pub package: String,
    /// The name of the bundle.
    pub name: String,
    /// The version.
    pub version: String,
    /// The release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// The catalog; `None` if no catalog has the installed bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<String>,
    /// The channel, if the bundle is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// The image.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// What changes.
    pub change: Change,
    /// The upgrades from the installed bundle to this one, in order. Each waits until the one before it is healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// Who needs it and why.
    pub reasons: Vec<Reason>,
    /// The message of its deprecation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deprecated: Option<String>,
    /// A newer version that is asked for, or that an installed package could get, and that does not fit with the others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_back: Option<HeldBack>,
}

/// A version that would be better, if it were not for others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldBack {
    /// The version.
    pub version: String,
    /// What holds it back, a line each; empty where that was too much to find out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
}

/// What changes for a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// It stays.
    Keep,
    /// It is new.
    Install,
    /// Its version becomes higher.
    Upgrade,
    /// Its version becomes lower.
    Downgrade,
}

/// An upgrade by one edge of a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// The bundle that it leads to.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its image, as the catalog of the member says. A bundle of the same name in another catalog may be another one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// The channel of the edge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<String>,
    /// What allows it.
    pub edge: Edge,
}

/// What allows an upgrade.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Edge {
    /// The bundle replaces the one before.
    Replaces,
    /// The bundle skips the one before.
    Skips,
    /// The version before is in the skip range of the bundle.
    SkipRange,
    /// No channel does; the policy is `SelfCertified`.
    Forced,
}

/// Why a bundle is a member.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reason {
    /// The user asks for it.
    Requested {
        /// The range, if any.
        range: String,
    },
    /// It is installed.
    Installed,
    /// A constraint of the question asks for it.
    Constraint {
        /// What the constraint asks for.
        need: String,
    },
    /// Another member needs it.
    #[serde(rename_all = "camelCase")]
    NeededBy {
        /// The package of the other member.
        package: String,
        /// The version of the other member.
        version: String,
        /// What that one needs.
        need: String,
    },
}
