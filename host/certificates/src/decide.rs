//! Decides what to do with a Secret. Pure: no keys are generated, and the clock is an argument.

use std::{collections::BTreeSet, fmt};

use chandler_core::Digest;
use time::OffsetDateTime;

use crate::{
    material::{Authority, Material},
    policy::Policy,
    stored::{Stored, Unusable},
};

/// Why a new certificate is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The Secret does not exist.
    Missing,
    /// The certificate in the Secret cannot be used.
    Unusable(Unusable),
    /// The certificate has reached its renewal time.
    Due,
    /// A rotation was requested.
    Requested,
}

impl fmt::Display for Cause {
    /// For logs; contains nothing secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("the Secret does not exist"),
            Self::Unusable(unusable) => unusable.fmt(f),
            Self::Due => f.write_str("it is due for renewal"),
            Self::Requested => f.write_str("a rotation was requested"),
        }
    }
}

/// What to do with a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub enum Decision {
    /// Leave it unchanged.
    Keep(Material),
    /// Announce a new certificate and keep serving the current one.
    Announce(Material, Cause),
    /// Serve the announced certificate.
    Switch {
        /// The Secret with the announced certificate being served.
        to: Material,
        /// The Secret until all clients of the certificate trust the authority. None if the switch cannot wait because
        /// the served certificate cannot be used.
        unless_trusted: Option<Material>,
    },
    /// Serve a new certificate at once, since there is no usable one.
    Replace {
        /// The previous authorities, which stay trusted while they are valid: Pods may still serve their certificates.
        trusted: Vec<Authority>,
        /// Why the certificate is replaced.
        cause: Cause,
    },
}

/// The digest of a rotation request, which fits into an annotation whatever the length of the request.
pub fn request(annotation: &str) -> String {
    Digest::of(annotation.as_bytes()).hex().to_owned()
}

/// What to do with the Secret of a certificate for these names. `request` is the [digest](request()) of the last
/// rotation request.
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
    let next = next.filter(|next| next.fault(names, policy.for_clients, now).is_none());
    let fault = served
        .as_ref()
        .map_or_else(|unusable| Some(unusable.clone()), |pair| pair.fault(names, policy.for_clients, now));
    let served = match (served, fault, next) {
        (Ok(served), None, next) => Material { served, next, authorities, request: heeded },
        // It was already announced, and the served certificate cannot be used.
        (_, _, Some(next)) => {
            let to = Material { served: next, next: None, authorities, request: heeded };
            return Decision::Switch { to: to.with_trusted_authorities(now), unless_trusted: None };
        }
        (_, fault, None) => {
            let cause = fault.map_or(Cause::Missing, Cause::Unusable);
            return Decision::Replace { trusted: authorities.into_iter().map(Authority).collect(), cause };
        }
    };
    let material = served.with_trusted_authorities(now);
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
