//! Serving certificates and other Secrets that a release asks for: the requests.
//!
//! [`chandler_certificates`] tells what to do and makes the keys. Keys are in Secrets and in the release that is applied, and
//! nowhere else: no log, status or Event tells more than the name of a Secret.

use std::{sync::Arc, time::Duration};

use chandler_certificates::{
    Cause, Decision, Declaration, DeclarationError, Declarations, IssueError, Material, Policy, Stored, decide,
    decide::decide, generated::GeneratedError,
};
use chandler_core::{ObjectError, Release};
use chandler_rollout::{Owner, Rollout, RolloutError};
use time::OffsetDateTime;

use crate::generated_secrets;

/// How often certificates are looked at, at the least: timers of years are not to be trusted.
const LONGEST: Duration = Duration::from_hours(12);

/// A release with everything that is applied.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The release with Secrets, and with the authorities by which the API server trusts them.
    pub release: Arc<Release>,
    /// When its certificates want to be looked at again; none where it has none.
    pub look_again: Option<Duration>,
}

/// Why a release could not be completed.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// What the release asks for cannot be given.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// A Secret could not be read, or is somebody else's.
    #[error(transparent)]
    Read(#[from] RolloutError),
    /// What the release asks for in generated values cannot be given.
    #[error(transparent)]
    Generated(#[from] GeneratedError),
    /// The operating system gave no randomness.
    #[error("failed to generate the values of a Secret: {0}")]
    Randomness(#[source] std::io::Error),
    /// No certificate could be made.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// What was made is no object.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// Adds what a release asks the host for. One that asks for nothing stays as it is, and costs no request. `rotate` is the value
/// of the annotation that asks for other certificates.
///
/// Nothing is written; keys that are new come with the release.
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
    let pass = Pass {
        rollout,
        policy,
        owner,
        declarations: &declarations,
        request: rotate.map(decide::request),
        now: OffsetDateTime::now_utc(),
    };
    let mut materials = Vec::new();
    for (index, declaration) in declarations.certificates().iter().enumerate() {
        materials.push(pass.material(index, declaration).await?);
    }
    let due = materials.iter().map(|material| material.look_again(pass.now, policy)).min();
    let look_again = due.map(|due| Duration::try_from(due - pass.now).unwrap_or_default().min(LONGEST));
    let release = declarations.complete(&release, &materials, policy)?;
    Ok(Completed { release: Arc::new(release), look_again })
}

/// One look at the certificates of a release.
struct Pass<'a> {
    rollout: &'a Rollout,
    policy: &'a Policy,
    owner: &'a Owner,
    declarations: &'a Declarations,
    /// What stands for the last request to replace certificates.
    request: Option<String>,
    now: OffsetDateTime,
}

impl Pass<'_> {
    /// What the Secret with this position is to hold. One that is somebody else's is refused before any key is made.
    async fn material(&self, index: usize, declaration: &Declaration) -> Result<Material, CompletionError> {
        let stored = self.rollout.own(self.owner, &declaration.secret).await?.as_ref().map(Stored::read);
        let (names, request) = (declaration.names(), self.request.as_deref());
        let decision = match decide(stored, &names, request, self.now, self.policy) {
            Decision::Switch { to, unless_trusted: Some(material) } if !self.is_trusted(index, &to).await? => {
                Decision::Keep(material)
            }
            decision => decision,
        };
        self.tell(declaration, &decision);
        Ok(decision.take(&names, request, self.now, self.policy)?)
    }

    /// Whether everything in the cluster that checks a certificate trusts this one. What is not there yet will.
    async fn is_trusted(&self, index: usize, material: &Material) -> Result<bool, CompletionError> {
        for target in self.declarations.targets().iter().filter(|target| target.certificates.contains(&index)) {
            let live = self.rollout.own(self.owner, &target.object).await?;
            if live.is_some_and(|live| !self.declarations.trusts(target, &live, index, material)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn tell(&self, declaration: &Declaration, decision: &Decision) {
        let tell = |action: &str, cause: Option<&Cause>| {
            let cause = cause.map(tracing::field::display);
            tracing::info!(deployment = %self.owner.name, secret = %declaration.secret, cause, "{action}");
        };
        match decision {
            Decision::Keep(_) => {}
            Decision::Announce(_, cause) => tell("announcing another serving certificate", Some(cause)),
            Decision::Switch { .. } => tell("serving the announced certificate", None),
            Decision::Replace { cause, .. } => tell("issuing a serving certificate", Some(cause)),
        }
    }
}
