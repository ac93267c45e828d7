//! The status of a ClusterOperator for one or many packages.

use chandler_api::{ClusterOperatorStatus, RelatedObject};
use k8s_openapi::jiff::Timestamp;

use super::{
    Derived, Memory, Package, Platform, Thresholds, limits,
    memory::{self, Trouble},
    package::{State, Way},
    report::{self, AS_EXPECTED, AVAILABLE, DEGRADED, OPERATOR, Report, Verdict, lines, sentences},
};

const ERROR: &str = "PlatformOperatorError";
const UNHEALTHY: &str = "Unhealthy";
const INSTALLING: &str = "Installing";
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
    /// - Available is False until the first rollout of all packages is complete: the cluster-version operator takes a cluster for installed
    ///   once its ClusterOperators are available. From then on, only trouble makes it False, and a package that is added makes it False only
    ///   while the cluster itself is being installed.
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
        let Thresholds { installation, outage, failure } = self.thresholds;
        let is_initialized = !self.platform.is_installing && was_available(before);
        let reported = |trouble| {
            let is_trouble = report::find(before, AVAILABLE).is_some_and(|available| available.reason == ERROR);
            // Before the first rollout is complete, the condition is False for another reason at first, and its time says nothing.
            let least = now.checked_sub(memory::signed(outage)).unwrap_or(Timestamp::MIN);
            let unavailable = memory::reported(before, (AVAILABLE, "False"), outage, now).filter(|_| is_trouble);
            let unavailable = unavailable.map(|since| if is_initialized { since } else { least });
            let degraded = memory::reported(before, (DEGRADED, "True"), failure, now);
            match (trouble, unavailable) {
                // Without Available=False, Degraded=True was not about an outage.
                (Trouble::Outage, None) => None,
                (Trouble::Outage, Some(unavailable)) => Some(degraded.map_or(unavailable, |it| it.min(unavailable))),
                (Trouble::Failure, _) => degraded,
            }
        };
        memory.observe(self.packages.iter().flat_map(|package| troubles(package)), reported, now);
        let seen = Seen { packages: self.packages, thresholds: self.thresholds, memory, now, is_initialized };
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
            Trouble::Outage => vec![installation, outage, failure],
        };
        Derived { status: report.status(before, now), again: memory.next(times, now) }
    }

    fn is_rolled_out(&self) -> bool {
        self.packages.iter().all(|package| package.is_rolled_out())
    }
}

/// Whether the first rollout was complete once. A version is reported then and stays, and so does Available=True.
fn was_available(before: Option<&ClusterOperatorStatus>) -> bool {
    let has_version = before.is_some_and(|before| before.versions.iter().any(|version| version.name == OPERATOR));
    has_version || report::find(before, AVAILABLE).is_some_and(|available| available.status == "True")
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
    /// Whether a package that is not installed yet leaves the others available.
    is_initialized: bool,
}

impl Seen<'_> {
    fn is_out(&self, package: &Package) -> bool {
        let Thresholds { installation, outage, .. } = self.thresholds;
        let least = if package.is_installed { outage } else { installation.min(outage) };
        self.memory.lasts(Trouble::Outage, &package.operator, least, self.now)
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
        let out = self.collect(|package| failing(package).filter(|_| self.is_out(package)));
        if !out.is_empty() {
            return Verdict::no(ERROR, sentences(&out));
        }
        let pending = self.collect(pending);
        if !self.is_initialized && !pending.is_empty() {
            return Verdict::no(INSTALLING, lines(operator, "Platform operators are not installed yet", &pending));
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
            State::Failed { is_under_way: true, message, .. } if !self.is_degraded(package) => {
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
            Way::Installation => INSTALLING,
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

/// Why a package is not installed yet, until its first installation. `None` if it is being removed.
fn pending(package: &Package) -> Option<String> {
    match &package.state {
        State::Moving { to: Way::Removal, .. } => None,
        _ if package.is_installed => None,
        State::Moving { message, .. } | State::Waiting { message } | State::Failed { message, .. } => {
            Some(message.clone())
        }
        State::Settled => Some("is not installed yet".to_owned()),
    }
}

/// The failure of a package that does not work, in the words of OpenShift's controller, and the cause.
fn failing(package: &Package) -> Option<String> {
    let problem = problem(package)?;
    let reason = package.outage.as_ref().map(|_| UNHEALTHY).or_else(|| package.state.failure_reason())?;
    let operator = &package.operator;
    Some(format!("encountered the failing {operator} platform operator with reason {reason:?}: it {problem}"))
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
