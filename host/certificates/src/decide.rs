//! What to do about a Secret. Pure: no keys are made, the clock is an argument.

use std::{collections::BTreeSet, fmt};

use chandler_core::Digest;
use time::OffsetDateTime;

use crate::{
    material::{Authority, Material},
    policy::Policy,
    stored::{Stored, Unusable},
};

/// Why there is to be another certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// There is none.
    Missing,
    /// The one that is there cannot serve.
    Unusable(Unusable),
    /// The one that is there has lived for long enough.
    Due,
    /// Somebody asked for it.
    Requested,
}

impl fmt::Display for Cause {
    /// For a log: never with anything secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is none"),
            Self::Unusable(unusable) => unusable.fmt(f),
            Self::Due => f.write_str("it is due"),
            Self::Requested => f.write_str("it was asked for"),
        }
    }
}

/// What to do about a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Decision {
    /// Leave it as it is.
    Keep(Material),
    /// Announce another certificate, and go on with the one that is served.
    Announce(Material, Cause),
    /// Serve the one that was announced.
    Switch {
        /// With the announced one being served.
        to: Material,
        /// What to leave it at while not everything that checks the certificate trusts its authority. None where there
        /// is no choice, since what is served cannot serve.
        unless_trusted: Option<Material>,
    },
    /// Serve another certificate at once: there is none that can.
    Replace {
        /// The authorities of before, which are trusted as long as they are valid: pods may still serve with
        /// certificates of theirs.
        trusted: Vec<Authority>,
        /// Why.
        cause: Cause,
    },
}

/// What stands for a request to replace a certificate: a digest, so that any value of an annotation fits into another.
pub fn request(annotation: &str) -> String {
    Digest::of(annotation.as_bytes()).hex().to_owned()
}

/// What to do about a Secret that is to serve for these names. `request` is what [`request()`] makes of what somebody asked
/// for last.
pub fn decide(
    stored: Option<Stored>,
    names: &BTreeSet<String>,
    request: Option<&str>,
    now: OffsetDateTime,
    policy: &Policy,
) -> Decision {
    let Some(Stored { served, next, authorities, request: heeded }) = stored else {
        return Decision::Replace { trusted: Vec::new(), cause: Cause::Missing };
    };
    let next = next.filter(|next| next.fault(names, now).is_none());
    let fault = served.as_ref().map_or_else(|unusable| Some(unusable.clone()), |pair| pair.fault(names, now));
    let served = match (served, fault, next) {
        (Ok(served), None, next) => Material { served, next, authorities, request: heeded },
        // It was announced, and nothing can be worse than what is served now.
        (_, _, Some(next)) => {
            let to = Material { served: next, next: None, authorities, request: heeded };
            return Decision::Switch { to: to.tidied(now), unless_trusted: None };
        }
        (_, fault, None) => {
            let cause = fault.map_or(Cause::Missing, Cause::Unusable);
            return Decision::Replace { trusted: authorities.into_iter().map(Authority).collect(), cause };
        }
    };
    let material = served.tidied(now);
    if let Some(next) = &material.next {
        if now < policy.issued(next.certificate.not_before).saturating_add(policy.propagation) {
            return Decision::Keep(material);
        }
        let to = Material { served: next.clone(), next: None, ..material.clone() };
        return Decision::Switch { to, unless_trusted: Some(material) };
    }
    let certificate = &material.served.certificate;
    if request.is_some() && request != material.request.as_deref() {
        return Decision::Announce(material, Cause::Requested);
    }
    if now >= policy.renewal(certificate.not_before, certificate.not_after) {
        return Decision::Announce(material, Cause::Due);
    }
    Decision::Keep(material)
}
