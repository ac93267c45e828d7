//! What a check may take, and what it says where that is not enough.

use chandler_core::Stop;
use chandler_re2::Exhausted;

/// How many steps the check of all custom resources of a CRD may take. A step takes well below a microsecond.
pub const STEPS: u64 = 200_000_000;

/// Why the custom resources of a CRD were not checked to the end. What was not checked is not known to be harmless, so
/// the upgrade is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// Every two versions that are served are compared, and these are too many.
    #[error(
        "CRD {crd:?} has {versions} versions, and an upgrade is checked for {most} at most; remove versions that nobody uses, \
         or turn the check off: spec.preflight.crdUpgradeSafety.disabled: true"
    )]
    TooManyVersions {
        /// The name of the CustomResourceDefinition.
        crd: String,
        /// How many the old or the new one has.
        versions: usize,
        /// How many it may have.
        most: usize,
    },
    /// The regular expressions of the schemas take too much memory.
    #[error(
        "CRD {crd:?} cannot be checked against its custom resources: {pointer}: {exhausted}; use fewer or shorter ones \
         (a count as in .{{800}} multiplies), or check no custom resources of it: spec.preflight.crdUpgradeSafety.sampleSize: 0"
    )]
    PatternsTooLarge {
        /// The name of the CustomResourceDefinition.
        crd: String,
        /// The JSON pointer of the pattern that no longer fits.
        pointer: String,
        /// How much they may take.
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
        /// The custom resource at which none were left.
        object: String,
        /// How many there may be.
        stop: Stop,
    },
    /// Nobody waits for it any more.
    #[error("the check of CRD {crd:?} was cancelled")]
    Cancelled {
        /// The name of the CustomResourceDefinition.
        crd: String,
    },
}

/// Why one schema or one object was not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    /// The patterns of a schema; the pointer is from its root.
    Patterns { pointer: String, exhausted: Exhausted },
    /// The steps.
    Steps(Stop),
}

impl From<Stop> for Excess {
    fn from(stop: Stop) -> Self {
        Self::Steps(stop)
    }
}

impl Excess {
    /// The error for a CRD, where a schema at this pointer was read, or this object was checked.
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
