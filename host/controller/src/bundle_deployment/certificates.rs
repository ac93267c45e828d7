//! Serving certificates that a release asks for.
//!
//! [`chandler_certificates`] tells what to do and makes the keys; here are the requests. Keys are in Secrets and in the
//! release that is applied, and nowhere else: no log, status or Event tells more than the name of a Secret.

use std::{sync::Arc, time::Duration};

use chandler_api::{BundleDeployment, Reason};
use chandler_certificates::{
    Cause, Decision, Declaration, Declarations, Material, Stored, annotations::ROTATE, decide, decide::decide,
};
use chandler_core::Release;
use chandler_rollout::Owner;
use kube::ResourceExt as _;
use time::OffsetDateTime;

use crate::{context::Context, problem::Problem};

/// How often certificates are looked at, at the least: timers of years are not to be trusted.
const LONGEST: Duration = Duration::from_hours(12);

/// A release with everything that is applied.
pub(crate) struct Completed {
    /// The release with Secrets, and with the authorities by which the API server trusts them.
    pub(crate) release: Arc<Release>,
    /// When its certificates want to be looked at again; none where it has none.
    pub(crate) look_again: Option<Duration>,
}

/// Adds what a release asks the host for. One that asks for nothing stays as it is, and costs no request.
pub(crate) async fn complete(
    deployment: &BundleDeployment,
    owner: &Owner,
    release: Arc<Release>,
    context: &Context,
) -> Result<Completed, Problem> {
    let declarations = Declarations::of(&release, &owner.install_namespace)
        .map_err(|error| Problem::lasting(Reason::InvalidOutput, error.to_string()))?;
    if declarations.is_empty() {
        return Ok(Completed { release, look_again: None });
    }
    let policy = &context.options.certificates;
    let pass = Pass {
        owner,
        declarations: &declarations,
        request: deployment.annotations().get(ROTATE).map(|value| decide::request(value)),
        now: OffsetDateTime::now_utc(),
        context,
    };
    let mut materials = Vec::new();
    for (index, declaration) in declarations.certificates().iter().enumerate() {
        materials.push(pass.material(index, declaration).await?);
    }
    let due = materials.iter().map(|material| material.look_again(pass.now, policy)).min();
    let look_again = due.map(|due| Duration::try_from(due - pass.now).unwrap_or_default().min(LONGEST));
    let release = declarations.complete(&release, &materials, policy).map_err(|error| internal(&error))?;
    Ok(Completed { release: Arc::new(release), look_again })
}

/// One look at the certificates of a release.
struct Pass<'a> {
    owner: &'a Owner,
    declarations: &'a Declarations,
    /// What stands for the last request to replace certificates.
    request: Option<String>,
    now: OffsetDateTime,
    context: &'a Context,
}

impl Pass<'_> {
    /// What the Secret with this position is to hold. One that is somebody else's is refused before any key is made.
    async fn material(&self, index: usize, declaration: &Declaration) -> Result<Material, Problem> {
        let policy = &self.context.options.certificates;
        let secret = self.context.rollout.own(self.owner, &declaration.secret).await;
        let stored = secret.map_err(|error| Problem::from(&error))?.as_ref().map(Stored::read);
        let (names, request) = (declaration.names(), self.request.as_deref());
        let decision = match decide(stored, &names, request, self.now, policy) {
            Decision::Switch { to, unless_trusted: Some(material) } if !self.is_trusted(index, &to).await? => {
                Decision::Keep(material)
            }
            decision => decision,
        };
        self.tell(declaration, &decision);
        decision.take(&names, request, self.now, policy).map_err(|error| internal(&error))
    }

    /// Whether everything in the cluster that checks a certificate trusts this one. What is not there yet will.
    async fn is_trusted(&self, index: usize, material: &Material) -> Result<bool, Problem> {
        for target in self.declarations.targets().iter().filter(|target| target.certificates.contains(&index)) {
            let live = self.context.rollout.own(self.owner, &target.object).await;
            let live = live.map_err(|error| Problem::from(&error))?;
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

fn internal(error: &dyn std::error::Error) -> Problem {
    Problem::passing(Reason::InternalError, error.to_string())
}
