//! How long certificates live, and when they are replaced.

use time::{Duration, OffsetDateTime};

/// How long certificates live, and when they are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How long a certificate and its authority are valid. Default one year: the predecessors give two, and what renews
    /// itself can do with less.
    pub lifetime: Duration,
    /// After which part of its life, in percent, a certificate is replaced. Default 67, as cert-manager does: with a year,
    /// four months are left for a controller that is stopped, and for programs that have to be restarted to read it.
    pub renew_after_percent: u8,
    /// How long an announced authority is given to reach every API server, once it is written, before a certificate of it
    /// is served. API servers follow by a watch, within a second as a rule. Default ten seconds.
    pub propagation: Duration,
    /// By how much the beginning of validity is earlier than the time of issue, because clocks differ. Default five minutes.
    pub backdate: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            lifetime: Duration::days(365),
            renew_after_percent: 67,
            propagation: Duration::seconds(10),
            backdate: Duration::minutes(5),
        }
    }
}

impl Policy {
    /// From when on a certificate that is valid between these times is replaced.
    pub fn renewal(&self, not_before: OffsetDateTime, not_after: OffsetDateTime) -> OffsetDateTime {
        let life = not_after - not_before;
        not_before.saturating_add(life / 100 * i32::from(self.renew_after_percent.min(100)))
    }

    /// When a certificate was issued that is valid from this time on.
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
        // Odd validities overflow nothing.
        let end = time::macros::datetime!(9999-12-31 23:59:59 UTC);
        assert!(policy.renewal(start, end) < end);
        assert!(policy.renewal(end, start) < end);
    }
}
