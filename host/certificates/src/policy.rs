//! The lifetime and renewal of certificates.

use time::{Duration, OffsetDateTime};

/// The lifetime and renewal of certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long a certificate and its authority are valid. Default one year; OLM uses two, but automatic renewal allows
    /// less.
    pub lifetime: Duration,
    /// The percentage of its lifetime after which a certificate is replaced. Default 67, like cert-manager: with a
    /// lifetime of one year, four months remain for a stopped controller to restart and for programs to be restarted.
    pub renew_after_percent: u8,
    /// How long to wait after writing an announced authority until all API servers use it, before its certificate is
    /// served. API servers watch these objects and usually follow within a second. Default ten seconds.
    pub propagation: Duration,
    /// How far the start of validity precedes the time of issue, to tolerate clock skew. Default five minutes.
    pub backdate: Duration,
    /// Whether certificates are for clients, too. Default: only for servers.
    pub for_clients: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lifetime: Duration::days(365),
            renew_after_percent: 67,
            propagation: Duration::seconds(10),
            backdate: Duration::minutes(5),
            for_clients: false,
        }
    }
}

impl Policy {
    /// When a certificate with this validity is due for renewal.
    pub fn renewal(&self, not_before: OffsetDateTime, not_after: OffsetDateTime) -> OffsetDateTime {
        let life = not_after - not_before;
        not_before.saturating_add(life / 100 * i32::from(self.renew_after_percent.min(100)))
    }

    /// The time of issue of a certificate that is valid from this time.
    pub(crate) fn issued(&self, not_before: OffsetDateTime) -> OffsetDateTime {
        not_before.saturating_add(self.backdate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_replaced_when_a_third_of_its_life_is_left() {
        let policy = Policy::default();
        let start = OffsetDateTime::UNIX_EPOCH;
        assert_eq!(policy.renewal(start, start + Duration::days(100)), start + Duration::days(67));
        assert_eq!(policy.renewal(start, start), start);
        // Extreme dates do not overflow.
        let end = time::macros::datetime!(9999-12-31 23:59:59 UTC);
        assert!(policy.renewal(start, end) < end);
        assert!(policy.renewal(end, start) < end);
    }
}
