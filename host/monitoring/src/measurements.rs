//! What the controller measures, in terms of few constants.

use std::net::IpAddr;

/// How a call of a provisioner ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    /// It returned objects.
    Completed,
    /// It failed, for this reason of a condition.
    Failed(&'static str),
}

impl CallOutcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Completed => COMPLETED,
            Self::Failed(reason) => reason,
        }
    }
}

/// The outcome of work that succeeded.
pub(crate) const COMPLETED: &str = "completed";

/// What a call of a provisioner used, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// The largest memory of the instance.
    pub memory: u64,
    /// What it read of the bundle.
    pub read: u64,
    /// The objects that it returned.
    pub returned: u64,
}

/// A step of the reconcile of a BundleDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The content is fetched, or read from the cache.
    Fetch,
    /// The objects are rendered, or read from the cache.
    Render,
    /// The release is selected. The wait for fetching and rendering is a part of it.
    Choose,
    /// The change is approved, or waits for that.
    Approve,
    /// The release is applied, or observed and repaired.
    RollOut,
    /// The record and the status are written.
    Report,
}

impl Step {
    /// Every step.
    pub const ALL: [Self; 6] = [Self::Fetch, Self::Render, Self::Choose, Self::Approve, Self::RollOut, Self::Report];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Fetch => "fetch",
            Self::Render => "render",
            Self::Choose => "choose",
            Self::Approve => "approve",
            Self::RollOut => "roll_out",
            Self::Report => "report",
        }
    }
}

/// Where a server is, as far as its name says so. Tenants choose the names of servers, which are therefore not used as labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostClass {
    /// A Service of the cluster: a name below `svc` or `cluster.local`.
    Cluster,
    /// A loopback, private or link-local address, or a name without a public suffix.
    Private,
    /// Any other name or address.
    Public,
    /// Content that comes from the cluster itself: ConfigMaps and uploads.
    None,
}

impl HostClass {
    /// The class of the server in an image reference or URL.
    pub fn of_location(location: &str) -> Self {
        let rest = location.split_once("://").map_or(location, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let name = match host.strip_prefix('[') {
            Some(address) => address.split(']').next().unwrap_or_default(),
            None => host.split(':').next().unwrap_or_default(),
        };
        if let Ok(address) = name.parse::<IpAddr>() {
            return if is_private(address) { Self::Private } else { Self::Public };
        }
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| name.ends_with(suffix));
        if ends(&[".svc", ".cluster.local"]) {
            Self::Cluster
        } else if !name.contains('.') || ends(&[".local", ".internal", ".lan", ".localhost"]) {
            Self::Private
        } else {
            Self::Public
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Private => "private",
            Self::Public => "public",
            Self::None => "none",
        }
    }
}

fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(it) => it.is_private() || it.is_loopback() || it.is_link_local(),
        IpAddr::V6(it) => it.is_loopback() || it.is_unique_local() || it.is_unicast_link_local(),
    }
}

/// How the resolver ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResolverOutcome {
    /// It found what to install.
    Decided,
    /// Nothing fits.
    Refused,
    /// The answer would take more steps than allowed.
    BudgetExceeded,
    /// The question is malformed, a catalog cannot be read, or the resolver panicked.
    Failed,
}

impl ResolverOutcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Decided => "decided",
            Self::Refused => "refused",
            Self::BudgetExceeded => "budget_exceeded",
            Self::Failed => "failed",
        }
    }
}

/// What became of a notification of an Alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationOutcome {
    /// The server accepted it.
    Delivered,
    /// The server did not accept it in any attempt.
    Failed,
    /// Too many waited for the server.
    Dropped,
    /// It repeats an earlier one, or there were too many in a minute.
    Suppressed,
}

impl NotificationOutcome {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
            Self::Suppressed => "suppressed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_of_a_host_is_read_from_its_name() {
        use HostClass::{Cluster, Private, Public};
        for (location, class) in [
            ("quay.io/example/harbour:v1", Public),
            ("registry.build.svc:5000/a@sha256:12", Cluster),
            ("https://user:secret@git.team.svc.cluster.local./a.git", Cluster),
            ("https://example.com:8443/a.tgz", Public),
            ("127.0.0.1:5000/a", Private),
            ("10.1.2.3/a", Private),
            ("8.8.8.8/a", Public),
            ("[fd00::1]:5000/a", Private),
            ("git@forge.lan:team/a.git", Private),
            ("registry:5000/a", Private),
            ("", Private),
        ] {
            assert_eq!(HostClass::of_location(location), class, "{location}");
        }
    }
}
