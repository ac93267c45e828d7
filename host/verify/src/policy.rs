//! Policies, parsed.

use chandler_core::Digest;
use serde::Serialize;

use crate::{
    Verification,
    requirement::Requirement,
    verification::{AnyOf, Signer},
};

/// The most signers of a list.
const SIGNERS: usize = 16;

/// Who must have signed. It demands at least one signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Policy {
    pub(crate) clauses: Vec<Clause>,
}

/// Signers of which some must have signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Clause {
    pub(crate) minimum: usize,
    pub(crate) signers: Vec<Requirement>,
}

/// A policy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct PolicyError {
    /// The path of the field in the policy, such as `allOf[0].publicKey.key`.
    pub path: String,
    /// What is wrong with it.
    pub problem: String,
}

impl PolicyError {
    pub(crate) fn at(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }
}

impl Policy {
    /// Parses a policy.
    ///
    /// # Errors
    /// A policy that demands nothing, a signer that is named twice in a list, and a key, identity or number that cannot be used.
    pub fn parse(verification: &Verification) -> Result<Self, PolicyError> {
        let Verification { all_of, any_of } = verification;
        if all_of.is_empty() && any_of.is_none() {
            return Err(PolicyError::at("allOf", "the policy demands no signature; set allOf or anyOf"));
        }
        let mut clauses = Vec::new();
        if !all_of.is_empty() {
            let signers = signers(all_of, "allOf")?;
            clauses.push(Clause { minimum: signers.len(), signers });
        }
        if let Some(AnyOf { minimum_matches, signers: any_of }) = any_of {
            let signers = signers(any_of, "anyOf.signers")?;
            let minimum = usize::try_from(*minimum_matches).unwrap_or(usize::MAX);
            if minimum == 0 || minimum > signers.len() {
                let most = signers.len();
                let problem = format!("it is not between 1 and {most}, the number of signers");
                return Err(PolicyError::at("anyOf.minimumMatches", problem));
            }
            clauses.push(Clause { minimum, signers });
        }
        Ok(Self { clauses })
    }

    /// The policy that demands what both demand.
    pub fn and(mut self, other: Self) -> Self {
        self.clauses.extend(other.clauses);
        self
    }

    /// The digest of what the policy demands: policies with the same digest give the same verdicts with the same trusted root.
    pub fn digest(&self) -> Digest {
        Digest::of_json(self)
    }
}

fn signers(list: &[Signer], path: &str) -> Result<Vec<Requirement>, PolicyError> {
    if list.is_empty() || list.len() > SIGNERS {
        return Err(PolicyError::at(
            path,
            format!("it has {} signers; between 1 and {SIGNERS} are possible", list.len()),
        ));
    }
    let mut signers: Vec<Requirement> = Vec::with_capacity(list.len());
    for (index, signer) in list.iter().enumerate() {
        let path = format!("{path}[{index}]");
        let requirement = Requirement::parse(signer, &path)?;
        if signers.iter().any(|other| other.is_same_signer(&requirement)) {
            // It would count twice.
            return Err(PolicyError::at(path, "this signer is listed before"));
        }
        signers.push(requirement);
    }
    Ok(signers)
}

#[cfg(test)]
mod tests;
