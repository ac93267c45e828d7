//! The status of the ClusterOperator for the controller: whether it can read what it reconciles.

use chandler_api::{ClusterOperatorStatus, RelatedObject};
use k8s_openapi::jiff::Timestamp;

use super::{
    Derived, Memory, Thresholds,
    memory::{self, Trouble},
    report::{AS_EXPECTED, AVAILABLE, DEGRADED, Report, Verdict, sentence},
};

const CANNOT_READ: &str = "PlatformOperatorsUnreadable";
const EXCEEDED: &str = "ExceededUnavailabilityThreshold";

/// What is known of the controller.
#[derive(Clone, Copy, Debug)]
pub struct Controller<'a> {
    /// Its version.
    pub version: &'a str,
    /// Why it cannot read what it reconciles, or `None` if it can.
    pub problem: Option<&'a str>,
    /// How long something is wrong until it is reported.
    pub thresholds: Thresholds,
}

impl Controller<'_> {
    /// The status. A failure is reported as Degraded after a while, and only a long one as Available=False: installed packages keep
    /// running.
    pub fn status(
        &self,
        related: Vec<RelatedObject>,
        before: Option<&ClusterOperatorStatus>,
        memory: &mut Memory,
        now: Timestamp,
    ) -> Derived {
        let Thresholds { outage, failure, .. } = self.thresholds;
        let reported = |_| {
            let unavailable = memory::reported(before, (AVAILABLE, "False"), failure, now);
            unavailable.or_else(|| memory::reported(before, (DEGRADED, "True"), outage, now))
        };
        memory.observe(self.problem.map(|_| (Trouble::Outage, String::new())), reported, now);
        let lasting = |least| self.problem.filter(|_| memory.lasts(Trouble::Outage, "", least, now));
        let cannot = |problem: &str| sentence(&format!("The controller cannot reconcile PlatformOperators: {problem}"));
        let works = format!("The controller {} reconciles PlatformOperators.", self.version);
        let report = Report {
            available: match lasting(failure) {
                Some(problem) => Verdict::no(EXCEEDED, cannot(problem)),
                None => Verdict::yes(AS_EXPECTED, works.clone()),
            },
            progressing: Verdict::no(AS_EXPECTED, format!("The controller {} is rolled out.", self.version)),
            degraded: match lasting(outage) {
                Some(problem) => Verdict::yes(CANNOT_READ, cannot(problem)),
                None => Verdict::no(AS_EXPECTED, works),
            },
            upgradeable: Verdict::yes(AS_EXPECTED, "The controller permits upgrades of the cluster."),
            version: self.problem.is_none().then(|| self.version.to_owned()),
            related,
        };
        Derived { status: report.status(before, now), again: memory.next(|_| vec![outage, failure], now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_operators::report;

    #[test]
    fn a_failure_is_reported_after_a_while_and_a_long_one_as_unavailable() {
        let mut memory = Memory::default();
        let mut status = None;
        let mut look = |second: i64, problem: Option<&str>| {
            let thresholds = Thresholds::default();
            let controller = Controller { version: "1.2.3", problem, thresholds };
            let now = Timestamp::from_second(second).unwrap();
            let derived = controller.status(Vec::new(), status.as_ref(), &mut memory, now);
            let seen = [AVAILABLE, DEGRADED].map(|kind| {
                report::find(Some(&derived.status), kind).map(|it| format!("{}={}/{}", kind, it.status, it.reason))
            });
            status = Some(derived.status);
            let again = derived.again.map(Timestamp::as_second);
            (seen.into_iter().flatten().collect::<Vec<_>>().join(" "), again)
        };
        let refused = Some("the API server refuses to list PlatformOperators");
        let fine = "Available=True/AsExpected Degraded=False/AsExpected".to_owned();
        let degraded = "Available=True/AsExpected Degraded=True/PlatformOperatorsUnreadable".to_owned();
        let unavailable =
            "Available=False/ExceededUnavailabilityThreshold Degraded=True/PlatformOperatorsUnreadable".to_owned();
        assert_eq!(look(0, None), (fine.clone(), None));
        assert_eq!(look(10, refused), (fine.clone(), Some(70)));
        assert_eq!(look(70, refused), (degraded, Some(310)));
        assert_eq!(look(310, refused), (unavailable, None));
        assert_eq!(look(311, None), (fine, None));
    }
}
