//! Adds to a release the Secrets that it requests: serving certificates and generated values.
//!
//! The caller reads the objects of the cluster, so that this crate needs no client. Keys are in Secrets and in the applied release, and
//! nowhere else: logs, status and Events contain at most the name of a Secret.

use std::{sync::Arc, time::Duration};

use chandler_core::{ObjectError, ObjectKey, Release};
use serde_json::Value;
use time::OffsetDateTime;

use crate::{
    Cause, Decision, Declaration, DeclarationError, Declarations, IssueError, Material, Policy, Stored,
    decide::{self, decide},
    generated::{FillError, GeneratedError, GeneratedSecrets, operating_system},
};

/// The longest interval between two checks of certificates: timers of years are unreliable.
const MAX_INTERVAL: Duration = Duration::from_hours(12);

/// A release with everything that it requests.
#[derive(Clone, Debug)]
pub struct Completed {
    /// The release with Secrets, and with the `caBundle`s by which the API server trusts them.
    pub release: Arc<Release>,
    /// When its certificates must be checked again; `None` if it has none.
    pub look_again: Option<Duration>,
}

/// Why a release could not be completed. `E` is the error of the caller's reads.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError<E: std::error::Error + 'static> {
    /// A request for a certificate is invalid.
    #[error(transparent)]
    Declaration(#[from] DeclarationError),
    /// A Secret could not be read, or belongs to another owner.
    #[error(transparent)]
    Read(E),
    /// A request for a generated value is invalid.
    #[error(transparent)]
    Generated(#[from] GeneratedError),
    /// The operating system returned no random bytes, or live values are too long.
    #[error("failed to generate the values of a Secret: {0}")]
    Randomness(#[source] FillError),
    /// A certificate could not be issued.
    #[error(transparent)]
    Issue(#[from] IssueError),
    /// The completed object is invalid.
    #[error(transparent)]
    Object(#[from] ObjectError),
}

/// The owner of a release, as completing it needs it.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseOwner<'a> {
    /// The name of the BundleDeployment, for the log.
    pub name: &'a str,
    /// The namespace of objects that name none.
    pub install_namespace: &'a str,
    /// The value of the annotation that requests new certificates.
    pub rotate: Option<&'a str>,
}

/// Adds the Secrets that a release requests. A release that requests none is returned unchanged, without a read.
///
/// `own` reads an object that the owner has or may adopt: `None` if it does not exist, an error if it belongs to another owner. This writes
/// nothing: new keys are applied with the release.
pub async fn complete<E, F>(
    own: impl Fn(ObjectKey) -> F + Send + Sync,
    policy: &Policy,
    owner: ReleaseOwner<'_>,
    release: Arc<Release>,
) -> Result<Completed, CompletionError<E>>
where
    E: std::error::Error + 'static,
    F: Future<Output = Result<Option<Value>, E>> + Send,
{
    let release = fill(&own, owner.install_namespace, release).await?;
    let declarations = Declarations::of(&release, owner.install_namespace)?;
    if declarations.is_empty() {
        return Ok(Completed { release, look_again: None });
    }
    let check = Check {
        own: &own,
        policy,
        name: owner.name,
        declarations: &declarations,
        request: owner.rotate.map(decide::request),
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

/// The release with the generated values that it requests. The values are in the Secrets and in the applied release, and nowhere else.
///
/// Existing values are read from the Secret only if it belongs to the owner, or may be adopted. Another Secret of the same name is an error.
async fn fill<E, F>(
    own: &(impl Fn(ObjectKey) -> F + Send + Sync),
    install_namespace: &str,
    release: Arc<Release>,
) -> Result<Arc<Release>, CompletionError<E>>
where
    E: std::error::Error + 'static,
    F: Future<Output = Result<Option<Value>, E>> + Send,
{
    let generated = GeneratedSecrets::of(&release, install_namespace)?;
    if generated.is_empty() {
        return Ok(release);
    }
    let mut live = Vec::with_capacity(generated.secrets().len());
    for secret in generated.secrets() {
        live.push(own(secret.secret.clone()).await.map_err(CompletionError::Read)?);
    }
    Ok(Arc::new(generated.fill(&release, &live, &mut operating_system).map_err(CompletionError::Randomness)?))
}

/// One check of the certificates of a release.
struct Check<'a, R> {
    own: &'a R,
    policy: &'a Policy,
    name: &'a str,
    declarations: &'a Declarations,
    /// Identifies the last request to replace certificates.
    request: Option<String>,
    now: OffsetDateTime,
}

impl<R> Check<'_, R> {
    /// The desired content of the Secret at this position. A Secret that belongs to another owner is an error before any key is
    /// generated.
    async fn material<E, F>(&self, index: usize, declaration: &Declaration) -> Result<Material, CompletionError<E>>
    where
        E: std::error::Error + 'static,
        F: Future<Output = Result<Option<Value>, E>> + Send,
        R: Fn(ObjectKey) -> F + Send + Sync,
    {
        let stored =
            (self.own)(declaration.secret.clone()).await.map_err(CompletionError::Read)?.as_ref().map(Stored::read);
        let (names, request) = (declaration.names(), self.request.as_deref());
        let policy = &Policy { for_clients: !declaration.peer_names.is_empty(), ..*self.policy };
        let decision = match decide(stored, &names, request, self.now, policy) {
            Decision::Switch { to, unless_trusted: Some(material) } if !self.is_trusted(index, &to).await? => {
                Decision::Keep(material)
            }
            decision => decision,
        };
        self.log(declaration, &decision);
        Ok(decision.carry_out(&names, request, self.now, policy)?)
    }

    /// Whether every live object with a `caBundle` trusts this certificate. Objects that do not exist yet will be created with it.
    async fn is_trusted<E, F>(&self, index: usize, material: &Material) -> Result<bool, CompletionError<E>>
    where
        E: std::error::Error + 'static,
        F: Future<Output = Result<Option<Value>, E>> + Send,
        R: Fn(ObjectKey) -> F + Send + Sync,
    {
        for target in self.declarations.targets().iter().filter(|target| target.certificates.contains(&index)) {
            let live = (self.own)(target.object.clone()).await.map_err(CompletionError::Read)?;
            if live.is_some_and(|live| !self.declarations.trusts(target, &live, index, material)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn log(&self, declaration: &Declaration, decision: &Decision) {
        let log = |action: &str, cause: Option<&Cause>| {
            let cause = cause.map(tracing::field::display);
            tracing::info!(deployment = %self.name, secret = %declaration.secret, cause, "{action}");
        };
        match decision {
            Decision::Keep(_) => {}
            Decision::Announce(_, cause) => log("announcing a new serving certificate", Some(cause)),
            Decision::Switch { .. } => log("serving the announced certificate", None),
            Decision::Replace { cause, .. } => log("issuing a serving certificate", Some(cause)),
        }
    }
}
