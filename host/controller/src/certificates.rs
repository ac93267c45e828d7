//! Adds to a release the Secrets that it requests: serving certificates and generated values.
//!
//! [`chandler_certificates`] decides and generates the keys; this module makes the requests. Keys are in Secrets and in the applied
//! release, and nowhere else: logs, status and Events contain at most the name of a Secret.

mod generated_secrets;

use std::{sync::Arc, time::Duration};

use chandler_certificates::{
    Cause, Decision, Declaration, DeclarationError, Declarations, IssueError, Material, Policy, Stored, decide,
    decide::decide, generated::GeneratedError,
};
use chandler_core::{ObjectError, Release};
use chandler_rollout::{Owner, Rollout, RolloutError};
use time::OffsetDateTime;

/// The longest interval between two checks of certificates: timers of years are unreliable.
const MAX_INTERVAL: Duration = Duration::from_hours(12);

/// A release with everything that it requests.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The release with Secrets, and with the `caBundle`s by which the API server trusts them.
    pub release: Arc<Release>,
    /// When its certificates must be checked again; none where it has none.
    pub look_again: Option<Duration>,
}

/// Why a release could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// A request for a certificate is invalid.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// A Secret could not be read, or belongs to another owner.
    #[error(transparent)]
    Read(#[from] RolloutError),
    /// A request for a generated value is invalid.
    #[error(transparent)]
    Generated(#[from] GeneratedError),
    /// The operating system returned no random bytes.
    #[error("failed to generate the values of a Secret: {0}")]
    Randomness(#[source] std::io::Error),
    /// A certificate could not be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The completed object is invalid.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Adds the Secrets that a release requests. A release that requests none is returned unchanged, without a request to the API
/// server. `rotate` is the value of the annotation that requests new certificates.
///
/// This writes nothing: new keys are applied with the release.
pub async fn complete(
    rollout: &Rollout,
    policy: &Policy,
    owner: &Owner,
    rotate: Option<&str>,
    release: Arc<Release>,
) -> Result<Completed, CompletionError> {
    let release = generated_secrets::fill(rollout, owner, release).await?;
    let declarations = Declarations::of(&release, &owner.install_namespace)?;
    if declarations.is_empty() {
        return Ok(Completed { release, look_again: None });
    }
    let check = Check {
        rollout,
        policy,
        owner,
        declarations: &declarations,
        request: rotate.map(decide::request),
        now: OffsetDateTime::now_utc(),
    };
    let mut materials = Vec::new();
    for (index, declaration) in declarations.certificates().iter().enumerate() {
        materials.push(check.material(index, declaration).await?);
    }
    let due = materials.iter().map(|material| material.look_again(check.now, policy)).min();
    let look_again = due.map(|due| Duration::try_from(due - check.now).unwrap_or_default().min(MAX_INTERVAL));
    let release = declarations.complete(&release, &materials, policy)?;
    Ok(Completed { release: Arc::new(release), look_again })
}

/// One check of the certificates of a release.
struct Check<'a> {
    rollout: &'a Rollout,
    policy: &'a Policy,
    owner: &'a Owner,
    declarations: &'a Declarations,
    /// Identifies the last request to replace certificates.
    request: Option<String>,
    now: OffsetDateTime,
}

impl Check<'_> {
    /// The desired content of the Secret at this position. A Secret that belongs to another owner is an error before any key is
    /// generated.
    async fn material(&self, index: usize, declaration: &Declaration) -> Result<Material, CompletionError> {
        let stored = self.rollout.own(self.owner, &declaration.secret).await?.as_ref().map(Stored::read);
        let (names, request) = (declaration.names(), self.request.as_deref());
        let decision = match decide(stored, &names, request, self.now, self.policy) {
            Decision::Switch { to, unless_trusted: Some(material) } if !self.is_trusted(index, &to).await? => {
                Decision::Keep(material)
            }
            decision => decision,
        };
        self.log(declaration, &decision);
        Ok(decision.take(&names, request, self.now, self.policy)?)
    }

    /// Whether every live object with a `caBundle` trusts this certificate. Objects that do not exist yet will be created with it.
    async fn is_trusted(&self, index: usize, material: &Material) -> Result<bool, CompletionError> {
        for target in self.declarations.targets().iter().filter(|target| target.certificates.contains(&index)) {
            let live = self.rollout.own(self.owner, &target.object).await?;
            if live.is_some_and(|live| !self.declarations.trusts(target, &live, index, material)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn log(&self, declaration: &Declaration, decision: &Decision) {
        let log = |action: &str, cause: Option<&Cause>| {
            let cause = cause.map(tracing::field::display);
            tracing::info!(deployment = %self.owner.name, secret = %declaration.secret, cause, "{action}");
        };
        match decision {
            Decision::Keep(_) => {}
            Decision::Announce(_, cause) => log("announcing a new serving certificate", Some(cause)),
            Decision::Switch { .. } => log("serving the announced certificate", None),
            Decision::Replace { cause, .. } => log("issuing a serving certificate", Some(cause)),
        }
    }
}
