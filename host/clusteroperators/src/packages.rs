//! The status of a ClusterOperator for one or many packages.

use chandler_api::{ClusterOperatorStatus, RelatedObject};
use k8s_openapi::jiff::Timestamp;

use crate::{
    Derived, Memory, Package, Platform, Thresholds, limits,
    memory::{self, Trouble},
    package::{State, Way},
    report::{AS_EXPECTED, AVAILABLE, DEGRADED, Report, Verdict, lines},
};

const ERROR: &str = "PlatformOperatorError";
const NONE: &str = "No platform operators are present in the cluster";
const ALL: &str = "All platform operators are in a successful state";

/// What a ClusterOperator reports of.
#[derive(Clone, Copy, Debug)]
pub struct Packages<'a> {
    /// The packages.
    pub packages: &'a [&'a Package],
    /// What is known of the platform.
    pub platform: &'a Platform,
    /// The version to report once all packages are rolled out and work.
    pub version: Option<&'a str>,
    /// How long something is wrong until it is reported.
    pub thresholds: Thresholds,
}

impl Packages<'_> {
    /// The status.
    ///
    /// - Available is False while an installed package does not work, or the first installation of one fails, once that has lasted.
    /// - Progressing is True while a package is on the way to another state.
    /// - Degraded is True once a failure has lasted.
    /// - Upgradeable is False while a package forbids the next minor version of the platform.
    pub fn status(
        &self,
        related: Vec<RelatedObject>,
        before: Option<&ClusterOperatorStatus>,
        memory: &mut Memory,
        now: Timestamp,
    ) -> Derived {
        let Thresholds { outage, failure } = self.thresholds;
        let reported = |trouble| {
            let unavailable = memory::reported(before, (AVAILABLE, "False"), outage, now);
            let degraded = memory::reported(before, (DEGRADED, "True"), failure, now);
            match (trouble, unavailable) {
                // Without Available=False, Degraded=True was not about an outage.
                (Trouble::Outage, None) => None,
                (Trouble::Outage, Some(unavailable)) => Some(degraded.map_or(unavailable, |it| it.min(unavailable))),
                (Trouble::Failure, _) => degraded,
            }
        };
        memory.observe(self.packages.iter().flat_map(|package| troubles(package)), reported, now);
        let seen = Seen { packages: self.packages, thresholds: self.thresholds, memory, now };
        let report = Report {
            available: seen.available(),
            progressing: seen.progressing(),
            degraded: seen.degraded(),
            upgradeable: limits::upgradeable(self.packages, self.platform),
            version: self.version.filter(|_| self.is_rolled_out()).map(str::to_owned),
            related,
        };
        let times = |trouble| match trouble {
            Trouble::Failure => vec![failure],
            Trouble::Outage => vec![outage, failure],
        };
        Derived { status: report.status(before, now), again: memory.next(times, now) }
    }

    fn is_rolled_out(&self) -> bool {
        self.packages.iter().all(|package| package.is_rolled_out())
    }
}

/// What is wrong with a package. One whose first installation fails does not work, either.
fn troubles(package: &Package) -> Vec<(Trouble, String)> {
    let has_failed = package.state.failure().is_some();
    let is_out = package.outage.is_some() || has_failed && !package.is_installed;
    let of = |trouble, holds: bool| holds.then(|| (trouble, package.operator.clone()));
    of(Trouble::Failure, has_failed).into_iter().chain(of(Trouble::Outage, is_out)).collect()
}

/// The packages at one time.
struct Seen<'a> {
    packages: &'a [&'a Package],
    thresholds: Thresholds,
    memory: &'a Memory,
    now: Timestamp,
}

impl Seen<'_> {
    fn is_out(&self, package: &Package) -> bool {
        self.memory.lasts(Trouble::Outage, &package.operator, self.thresholds.outage, self.now)
    }

    fn is_degraded(&self, package: &Package) -> bool {
        [Trouble::Failure, Trouble::Outage]
            .iter()
            .any(|trouble| self.memory.lasts(*trouble, &package.operator, self.thresholds.failure, self.now))
    }

    fn collect(&self, line: impl Fn(&Package) -> Option<String>) -> Vec<(String, String)> {
        self.packages.iter().filter_map(|package| Some((package.operator.clone(), line(package)?))).collect()
    }

    fn available(&self) -> Verdict {
        let out = self.collect(|package| problem(package).filter(|_| self.is_out(package)));
        if !out.is_empty() {
            return Verdict::no(ERROR, lines(operator, "Platform operators do not work", &out));
        }
        let is_fine = self.packages.iter().all(|package| package.is_rolled_out());
        Verdict::yes(
            AS_EXPECTED,
            match (self.packages, is_fine) {
                ([], _) => NONE,
                (_, true) => ALL,
                (_, false) => "The platform operators that are installed work",
            },
        )
    }

    fn progressing(&self) -> Verdict {
        let way = |package: &Package| match &package.state {
            State::Moving { to, message } => Some((*to, message.clone())),
            State::Failed { is_under_way: true, message } if !self.is_degraded(package) => {
                let to = if package.is_installed { Way::Upgrade } else { Way::Installation };
                Some((to, format!("is tried again: it {message}")))
            }
            _ => None,
        };
        let moving = self.collect(|package| way(package).map(|(_, message)| message));
        let first = self.packages.iter().filter_map(|package| way(package)).map(|(to, _)| to).min();
        let Some(first) = first else {
            let waiting = self.collect(|package| match &package.state {
                State::Waiting { message } => Some(message.clone()),
                _ => None,
            });
            return Verdict::no(
                AS_EXPECTED,
                match (self.packages, waiting.as_slice()) {
                    ([], _) => NONE.to_owned(),
                    (_, []) => "No platform operator is being rolled out".to_owned(),
                    (_, waiting) => lines(operator, "Platform operators wait", waiting),
                },
            );
        };
        let reason = match first {
            Way::Upgrade => "Upgrading",
            Way::Installation => "Installing",
            Way::Removal => "Removing",
        };
        Verdict::yes(reason, lines(operator, "Platform operators are being rolled out", &moving))
    }

    fn degraded(&self) -> Verdict {
        let failed = self.collect(|package| problem(package).filter(|_| self.is_degraded(package)));
        if !failed.is_empty() {
            return Verdict::yes(ERROR, lines(operator, "Platform operators need attention", &failed));
        }
        Verdict::no(AS_EXPECTED, if self.packages.is_empty() { NONE } else { "No platform operator needs attention" })
    }
}

fn operator(name: &str) -> String {
    format!("Platform operator {name}")
}

/// What is wrong with a package, the outage first: users notice it.
fn problem(package: &Package) -> Option<String> {
    match (&package.outage, package.state.failure()) {
        (Some(outage), Some(failure)) => Some(format!("{outage}; it {failure}")),
        (Some(outage), None) => Some(outage.clone()),
        (None, failure) => failure.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests;
