//! What a release is made of, fetched and rendered beside the slots of passes: a registry that sends a byte now and then, or a
//! provisioner that takes all the time it gets, holds up nobody but the BundleDeployments that want something of it.

use std::sync::Arc;

use chandler_api::{BundleDeployment, ProvisionerInUse, Reason, Revision};
use chandler_core::{Digest, nesting};
use chandler_runtime::{Jobs, Panicked};
use kube::ResourceExt as _;

use super::{
    Pass, asked,
    assessment::{Assessment, Reached, Unpacked},
    choose::{in_use, release_facts},
    render::{self, Rendered},
    rerender::{self, Remade},
    revisions::{Candidate, Cause, Config},
    source,
};
use crate::{context::Context, problem::Problem};

/// What is being fetched and rendered.
#[derive(Default)]
pub(crate) struct Preparing {
    candidates: Jobs<Described>,
    revisions: Jobs<Result<Remade, Problem>>,
}

impl Preparing {
    /// Ends what is under way for a BundleDeployment.
    pub(crate) fn end(&self, name: &str) {
        self.candidates.end(name);
        self.revisions.end(name);
    }

    /// Ends everything that is under way.
    pub(crate) fn end_all(&self) {
        self.candidates.end_all();
        self.revisions.end_all();
    }
}

/// What became of the bundle that a spec describes.
struct Described {
    unpacked: Option<Unpacked>,
    provisioner: Option<ProvisionerInUse>,
    candidate: Option<Candidate>,
    rendered: Result<Rendered, Reached>,
}

impl Described {
    fn failed(reached: Reached) -> Self {
        Self { unpacked: None, provisioner: None, candidate: None, rendered: Err(reached) }
    }
}

/// The release that the spec describes, as soon as it is there.
pub(super) async fn described(pass: Pass<'_>, found: &mut Assessment) -> Result<Rendered, Reached> {
    let Pass { deployment, context, slot, .. } = pass;
    let name = deployment.name_any();
    let work = || describe(deployment.clone(), Arc::clone(context));
    let (jobs, asked) = (&context.memory.preparing.candidates, asked(deployment));
    let outcome = jobs.outcome(&name, &asked, work, wake(&name, context));
    let described = match slot.lend(outcome).await.ok_or(Reached::Preparing)? {
        Ok(described) => described,
        Err(Panicked) => Described::failed(Reached::NotRendered(panicked())),
    };
    (found.unpacked, found.provisioner) = (described.unpacked, described.provisioner);
    found.candidate = described.candidate;
    described.rendered
}

/// The release of an earlier revision, made again, as soon as it is there.
pub(super) async fn remade(pass: Pass<'_>, revision: &Revision) -> Result<Remade, Problem> {
    let Pass { deployment, context, slot, .. } = pass;
    let (name, number) = (deployment.name_any(), revision.number);
    let work = || {
        let (deployment, revision, context) = (deployment.clone(), revision.clone(), Arc::clone(context));
        async move { rerender::rerender(&deployment, &revision, &context).await }
    };
    let wanted = Digest::of([asked(deployment).as_str(), &revision.release_digest].join(" ").as_bytes());
    let (jobs, job) = (&context.memory.preparing.revisions, format!("{name}/{number}"));
    let outcome = jobs.outcome(&job, &wanted, work, wake(&name, context));
    let being_made = || Problem::passing(Reason::Unpacking, format!("revision {number} is fetched and rendered again"));
    slot.lend(outcome).await.ok_or_else(being_made)?.unwrap_or_else(|Panicked| Err(panicked()))
}

/// Has a BundleDeployment reconciled again, later.
fn wake(name: &str, context: &Arc<Context>) -> impl FnOnce() + Send + 'static {
    let (name, context) = (name.to_owned(), Arc::clone(context));
    move || context.wake(&name)
}

fn panicked() -> Problem {
    let message = "the controller panicked while it prepared the bundle: please report what its log says";
    Problem::passing(Reason::InternalError, message)
}

async fn describe(deployment: BundleDeployment, context: Arc<Context>) -> Described {
    let class_name = &deployment.spec.provisioner_class_name;
    let class = match context.classes.get(class_name).await {
        Ok(class) => class,
        Err(problem) => return Described::failed(Reached::NoProvisioner(problem)),
    };
    let (tree, unpacked) = match source::unpack(&deployment, &context).await {
        Ok(unpacked) => unpacked,
        Err(problem) => return Described::failed(Reached::NotUnpacked(problem)),
    };
    let provisioner = in_use(class_name, &class);
    let failed = |problem| Described {
        unpacked: Some(unpacked.clone()),
        provisioner: Some(provisioner.clone()),
        ..Described::failed(Reached::NotRendered(problem))
    };
    let config = render::laid_over(&class.defaults, deployment.spec.config.as_ref());
    if config.values().any(nesting::is_too_deep) {
        let message = format!(
            "spec.config, or spec.config of the ProvisionerClass {class_name}, is nested more than about {} levels deep, so \
             that Chandler cannot read all of it: nest it less deeply",
            nesting::DEEPEST
        );
        return failed(Problem::lasting(Reason::InvalidConfiguration, message));
    }
    let namespace = &deployment.spec.install_namespace;
    let rendered = match render::render(&deployment, &class, tree, config.clone(), namespace, &context).await {
        Ok(rendered) => rendered,
        Err(problem) => return failed(problem),
    };
    let candidate = Candidate {
        cause: Cause::Spec,
        source: unpacked.resolved_source.clone(),
        content_digest: unpacked.content_digest.to_string(),
        provisioner: provisioner.clone(),
        install_namespace: namespace.clone(),
        config: Config::Known(config),
        release: release_facts(&rendered.release),
        approval: None,
    };
    let (unpacked, provisioner) = (Some(unpacked), Some(provisioner));
    Described { unpacked, provisioner, candidate: Some(candidate), rendered: Ok(rendered) }
}
