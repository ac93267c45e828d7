//! The content of a Secret with a certificate.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use time::{Duration, OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    annotations::{NOT_AFTER, RENEW_AFTER, REQUEST},
    certificate::Certificate,
    policy::Policy,
    stored::{AUTHORITIES, CERTIFICATE, KEY, NEXT_CERTIFICATE, NEXT_KEY, Pair},
};

/// The most trusted authorities at a time. Only frequent rotation requests reach it; then the oldest authorities are
/// dropped before they expire.
const MAX_AUTHORITIES: usize = 8;

/// The content of a Secret: the served certificate, possibly an announced one, and the trusted authorities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Material {
    pub(crate) served: Pair,
    pub(crate) next: Option<Pair>,
    pub(crate) authorities: Vec<Certificate>,
    pub(crate) request: Option<String>,
}

/// An authority that must still be trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority(pub(crate) Certificate);

impl Material {
    /// Collects the authorities to trust at this time, newest first and without duplicates: the authorities of both certificates, and
    /// previous ones that have not expired.
    pub(crate) fn with_trusted_authorities(mut self, now: OffsetDateTime) -> Self {
        let needed = [Some(&self.served), self.next.as_ref()];
        let needed: Vec<Certificate> = needed.into_iter().flatten().map(|pair| pair.authority.clone()).collect();
        let mut authorities: Vec<Certificate> =
            self.authorities.into_iter().filter(|authority| now < authority.not_after).chain(needed.clone()).collect();
        authorities.sort_by_cached_key(|authority| (std::cmp::Reverse(authority.not_before), authority.pem()));
        authorities.dedup();
        while authorities.len() > MAX_AUTHORITIES {
            let Some(oldest) = authorities.iter().rposition(|authority| !needed.contains(authority)) else { break };
            authorities.remove(oldest);
        }
        self.authorities = authorities;
        self
    }

    /// The trusted authorities, as PEM.
    pub fn authorities(&self) -> String {
        self.authorities.iter().map(Certificate::pem).collect()
    }

    /// The authority of the served certificate, as PEM.
    pub fn serving_authority(&self) -> String {
        self.served.authority.pem()
    }

    /// The served certificate, as PEM.
    pub fn certificate(&self) -> String {
        self.served.certificate.pem()
    }

    /// Whether another certificate is announced.
    pub fn is_announced(&self) -> bool {
        self.next.is_some()
    }

    /// The latest time of the next check.
    pub fn look_again(&self, now: OffsetDateTime, policy: &Policy) -> OffsetDateTime {
        let Pair { certificate, .. } = self.next.as_ref().unwrap_or(&self.served);
        if self.next.is_none() {
            return policy.renewal(certificate.not_before, certificate.not_after);
        }
        let switch = policy.issued(certificate.not_before).saturating_add(policy.propagation);
        // An overdue switch is checked at intervals of the propagation time.
        if switch > now { switch } else { now.saturating_add(policy.propagation.max(Duration::seconds(1))) }
    }

    /// The data of the Secret.
    pub(crate) fn data(&self) -> Map<String, Value> {
        let mut data = Map::new();
        let mut put = |name: &str, text: &str| {
            data.insert(name.to_owned(), json!(STANDARD.encode(text)));
        };
        put(CERTIFICATE, &self.certificate());
        put(KEY, self.served.key());
        put(AUTHORITIES, &self.authorities());
        if let Some(next) = &self.next {
            put(NEXT_CERTIFICATE, &next.certificate.pem());
            put(NEXT_KEY, next.key());
        }
        data
    }

    /// The annotations of the Secret.
    pub(crate) fn annotations(&self, policy: &Policy) -> Map<String, Value> {
        let Certificate { not_before, not_after, .. } = &self.served.certificate;
        let renewal = policy.renewal(*not_before, *not_after);
        let times = [(NOT_AFTER, *not_after), (RENEW_AFTER, renewal)];
        let mut annotations: Map<String, Value> = times
            .into_iter()
            .filter_map(|(name, time)| Some((name.to_owned(), json!(time.format(&Rfc3339).ok()?))))
            .collect();
        annotations.extend(self.request.as_ref().map(|request| (REQUEST.to_owned(), json!(request))));
        annotations
    }
}
