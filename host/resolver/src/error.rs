//! Why there is neither a decision nor an explanation.

use crate::{catalog::CatalogError, version::VersionError};

/// A limit of the [`Budget`](crate::Budget) was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    /// Comparisons and decisions.
    #[error("steps")]
    Steps,
    /// Bundles that may be candidates.
    #[error("candidates")]
    Bundles,
    /// Literals of the solver.
    #[error("memory")]
    Literals,
    /// Steps or memory of one rule in CEL.
    #[error("a CEL rule, in steps or memory")]
    Rule,
}

/// A question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// A range of the question is malformed.
    #[error("desired version range {range:?} is invalid: {error}")]
    Range {
        /// The range.
        range: String,
        /// What is wrong.
        error: VersionError,
    },
    /// The version of an installed bundle is malformed.
    #[error("installed bundle {name:?}: {error}")]
    Installed {
        /// The bundle.
        name: String,
        /// What is wrong.
        error: VersionError,
    },
    /// The version of the cluster is malformed.
    #[error("{0:?} is not a version of the cluster")]
    Cluster(String),
    /// A name is there twice.
    #[error("{what} {name:?} is there twice")]
    Twice {
        /// The kind of object that has the name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// The mode `Single` takes one package.
    #[error("mode Single takes one required package, and this question has {0}")]
    NotSingle(usize),
    /// The mode `Single` takes no constraints.
    #[error("mode Single takes no constraints")]
    ConstrainedSingle,
    /// A constraint of the question is malformed.
    #[error("the constraints are invalid: {0}")]
    Constraints(String),
    /// A catalog cannot be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Two catalogs offer what is equal.
    #[error("package {package:?}: catalogs {} and {} with the same priority offer version {version}: select one catalog, or raise the priority of one",
        .catalogs.first().map_or("", String::as_str), .catalogs.last().map_or("", String::as_str))]
    Ambiguous {
        /// The package.
        package: String,
        /// The version.
        version: String,
        /// The names of both.
        catalogs: Vec<String>,
    },
    /// The limits of the work were reached.
    #[error("the question exceeds the budget of {0}: ask for fewer packages, narrower ranges or fewer catalogs")]
    BudgetExceeded(#[from] Exceeded),
}
