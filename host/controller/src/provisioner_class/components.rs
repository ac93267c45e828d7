//! What pulls and compiles components, and which of them may run.

use chandler_api::{Reason, Verification};
use chandler_content::{ImageReference, Images, RequiredSignatures};
use chandler_decisions::problem::Problem;
use chandler_engine::Engine;
use chandler_source::{SignaturesError, Sources};

/// The largest component that is pulled, in bytes.
pub(super) const COMPONENT_BYTES: u64 = 64 << 20;

/// Pulls components, and compiles them.
#[derive(Clone)]
pub(crate) struct Components {
    pub(crate) engine: Engine,
    pub(crate) images: Images,
    /// Gives access to images.
    pub(crate) sources: Sources,
    /// Whether a component may run if neither its class nor a rule demands a signature.
    pub(crate) allow_unsigned: bool,
}

/// The signatures that a component must have are not known, so that it does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownSigners {
    /// The class has an invalid policy, or the trusted root cannot be used.
    #[error("spec.{0}")]
    Unusable(#[from] SignaturesError),
    /// No policy names signers.
    #[error(
        "the class names no signers: set spec.verification, or let a rule of --image-verification demand signatures of {0}; a controller \
         with --allow-unsigned runs unsigned components as well"
    )]
    Unnamed(String),
}

impl UnknownSigners {
    /// What the status says.
    pub(super) fn problem(&self) -> Problem {
        match self {
            Self::Unusable(SignaturesError::Policy(_)) => Problem::terminal(Reason::InvalidSpec, self.to_string()),
            Self::Unusable(SignaturesError::TrustRoot(error)) => {
                Problem::transient(Reason::InternalError, format!("the trusted root is not usable: {error}"))
            }
            Self::Unnamed(_) => Problem::terminal(Reason::SignersRequired, self.to_string()),
        }
    }
}

impl Components {
    /// The signatures that the artifact of a component must have: by the class and by the rules of the administrator. `None` if neither
    /// demands one and the controller allows that.
    pub(super) fn required(
        &self,
        artifact: &ImageReference,
        verification: Option<&Verification>,
    ) -> Result<Option<RequiredSignatures>, UnknownSigners> {
        match self.sources.required_signatures(artifact, verification)? {
            None if !self.allow_unsigned => Err(UnknownSigners::Unnamed(artifact.normalized_name())),
            required => Ok(required),
        }
    }
}
