//! The limits of a check, and the errors if they are exceeded.

use chandler_core::Stop;
use chandler_expression::re2::Exhausted;

/// The maximum number of steps for checking all custom resources of a CRD. A step takes well below a microsecond.
pub const STEPS: u64 = 200_000_000;

/// The custom resources of a CRD were not checked completely. They may be invalid, so the upgrade is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// All pairs of served versions are compared, and these are too many.
    #[error(
        "CRD {crd:?} has {versions} versions, and an upgrade is checked for {most} at most; remove unused versions, \
         or turn the check off: spec.preflight.crdUpgradeSafety.disabled: true"
    )]
    TooManyVersions {
        /// The name of the CustomResourceDefinition.
        crd: String,
        /// The number of versions of the old or the new CRD.
        versions: usize,
        /// The limit.
        most: usize,
    },
    /// The regular expressions of the schemas are too large.
    #[error(
        "CRD {crd:?} cannot be checked against its custom resources: {pointer}: {exhausted}; use fewer or shorter ones \
         (a count as in .{{800}} multiplies), or check no custom resources of it: spec.preflight.crdUpgradeSafety.sampleSize: 0"
    )]
    PatternsTooLarge {
        /// The name of the CustomResourceDefinition.
        crd: String,
        /// The JSON pointer of the first pattern that exceeds the budget.
        pointer: String,
        /// The exceeded budget.
        exhausted: Exhausted,
    },
    /// Checking takes too many steps.
    #[error(
        "CRD {crd:?} cannot be checked against its custom resources: {object}: {stop} in all; simplify the schema, or check \
         fewer custom resources: spec.preflight.crdUpgradeSafety.sampleSize"
    )]
    TooManySteps {
        /// The name of the CustomResourceDefinition.
        crd: String,
        /// The custom resource at which the limit was reached.
        object: String,
        /// The reason to stop.
        stop: Stop,
    },
    /// The caller is gone.
    #[error("the check of CRD {crd:?} was cancelled")]
    Cancelled {
        /// The name of the CustomResourceDefinition.
        crd: String,
    },
}

/// One schema or one object was not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// The patterns of a schema; the pointer starts at its root.
    Patterns { pointer: String, exhausted: Exhausted },
    /// The number of steps.
    Steps(Stop),
}

impl From<Stop> for Excess {
    fn from(stop: Stop) -> Self {
        Self::Steps(stop)
    }
}

impl Excess {
    /// The error for a CRD, if a schema at this pointer was read, or this object was checked.
    pub(super) fn of(self, crd: &str, schema: &str, object: String) -> CheckError {
        let crd = crd.to_owned();
        match self {
            Self::Patterns { pointer, exhausted } => {
                CheckError::PatternsTooLarge { crd, pointer: format!("{schema}{pointer}"), exhausted }
            }
            Self::Steps(Stop::Cancelled) => CheckError::Cancelled { crd },
            Self::Steps(stop) => CheckError::TooManySteps { crd, object, stop },
        }
    }
}
