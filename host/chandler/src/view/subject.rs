//! An object of one of Chandler's kinds, as messages and the command line name it.

use std::fmt;

use chandler_api::{ReportingKind, Resolution};

/// An object that a condition or a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    kind: ReportingKind,
    name: &'a str,
    suspended: Suspended,
}

/// Which object's `spec.suspend` the reason `Suspended` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suspended {
    /// The subject's.
    Itself,
    /// The BundleDeployment of a Resolution's set.
    Set,
}

impl<'a> Subject<'a> {
    /// The object of this kind and name.
    pub const fn new(kind: ReportingKind, name: &'a str) -> Self {
        Self { kind, name, suspended: Suspended::Itself }
    }

    /// The BundleDeployment of this name.
    pub const fn deployment(name: &'a str) -> Self {
        Self::new(ReportingKind::BundleDeployment, name)
    }

    /// The Resolution of this name, whose own spec is not suspended: only its set can be.
    pub const fn active_resolution(name: &'a str) -> Self {
        Self { kind: ReportingKind::Resolution, name, suspended: Suspended::Set }
    }

    /// An object that a command follows. The commands that follow a Resolution resume it first, or refuse one that is suspended.
    pub const fn followed(kind: ReportingKind, name: &'a str) -> Self {
        match kind {
            ReportingKind::Resolution => Self::active_resolution(name),
            kind => Self::new(kind, name),
        }
    }

    /// A Resolution.
    pub fn resolution(resolution: &'a Resolution) -> Self {
        let name = resolution.metadata.name.as_deref().unwrap_or_default();
        if resolution.spec.suspend { Self::new(ReportingKind::Resolution, name) } else { Self::active_resolution(name) }
    }

    /// The kind.
    pub const fn kind(&self) -> ReportingKind {
        self.kind
    }

    /// The name.
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// Whether the reason `Suspended` is about the set of this Resolution.
    pub const fn is_set_suspended(&self) -> bool {
        matches!(self.suspended, Suspended::Set)
    }
}

impl fmt::Display for Subject<'_> {
    /// As a command line names it: `NAME` for a BundleDeployment, `kind/NAME` for another kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ReportingKind::BundleDeployment => f.write_str(self.name),
            kind => write!(f, "{}/{}", kind.as_str().to_lowercase(), self.name),
        }
    }
}

/// The name of the BundleDeployment of a Resolution's set.
pub fn set_name(resolution: &str) -> String {
    format!("resolveset-{resolution}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_written_as_a_command_takes_it() {
        assert_eq!(Subject::deployment("shop").to_string(), "shop");
        assert_eq!(Subject::active_resolution("shop").to_string(), "resolution/shop");
        assert_eq!(Subject::new(ReportingKind::ProvisionerClass, "helm").to_string(), "provisionerclass/helm");
    }

    #[test]
    fn a_resolution_that_is_not_suspended_can_have_a_suspended_set() {
        let mut resolution = Resolution::default();
        assert!(Subject::resolution(&resolution).is_set_suspended());
        resolution.spec.suspend = true;
        assert!(!Subject::resolution(&resolution).is_set_suspended());
    }
}
