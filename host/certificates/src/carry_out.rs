//! Carries out a decision: generates the keys that it needs.

use std::collections::BTreeSet;

use time::OffsetDateTime;

use crate::{
    decide::Decision,
    issue::{IssueError, issue},
    material::{Authority, Material},
    policy::Policy,
};

impl Decision {
    /// The content of the Secret, with a new key if needed. A [`Decision::Switch`] is carried out; if some clients do
    /// not trust the authority yet, the caller must use `unless_trusted` instead.
    pub fn carry_out(
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
        Ok(material.with_trusted_authorities(now))
    }
}
