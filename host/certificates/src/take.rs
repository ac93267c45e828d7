//! Makes the keys that a decision needs.

use std::collections::BTreeSet;

use time::OffsetDateTime;

use crate::{
    decide::Decision,
    issue::{IssueError, issue},
    material::{Authority, Material},
    policy::Policy,
};

impl Decision {
    /// What the Secret is to hold, with a new key where one is needed. A [`Decision::Switch`] is taken: whoever finds that
    /// not everything trusts the authority uses its other half.
    pub fn take(
        self,
        names: &BTreeSet<String>,
        request: Option<&str>,
        now: OffsetDateTime,
        policy: &Policy,
    ) -> Result<Material, IssueError> {
        let material = match self {
            Self::Keep(material) | Self::Switch { to: material, .. } => return Ok(material),
            Self::Announce(material, _) => Material {
                next: Some(issue(names, now, policy)?),
                request: request.map(str::to_owned).or(material.request.clone()),
                ..material
            },
            Self::Replace { trusted, .. } => Material {
                served: issue(names, now, policy)?,
                next: None,
                authorities: trusted.into_iter().map(|Authority(certificate)| certificate).collect(),
                request: request.map(str::to_owned),
            },
        };
        Ok(material.tidied(now))
    }
}
