//! The reconciler of ProvisionerClasses: resolve, pull, check, compile, and only then swap.
//!
//! A newer component that cannot be had leaves the one before in use. Calls that are under way end on the component that
//! they began with.

mod retention;
mod status;
pub(crate) mod watch;

use std::{sync::Arc, time::Duration};

use chandler_api::{Component, ProvisionerClass, Reason};
use chandler_content::{ImageAccess, ImageReference, ResolvedImage};
use chandler_engine::{Limits, Provisioner};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, ResourceExt as _, core::DeserializeGuard, runtime::controller::Action};

use self::status::{Found, Step};
use crate::{
    ceiling::User,
    classes::{Class, Classes},
    context::Context,
    events, images,
    problem::{Problem, content},
    status_patch,
};

/// The largest component that is pulled.
const COMPONENT_BYTES: u64 = 64 << 20;

/// One reconcile could not even say what happened.
#[derive(Debug, thiserror::Error)]
#[error("failed to write a ProvisionerClass: {0}")]
pub(crate) struct ReconcileError(#[from] kube::Error);

/// A ProvisionerClass that one odd object cannot stop the watch of.
pub(crate) type GuardedClass = DeserializeGuard<ProvisionerClass>;

/// How often it is looked whether a deleted class is still in use.
const IN_USE_CHECK: Duration = Duration::from_secs(5);

/// One reconcile.
pub(crate) async fn reconcile(guarded: Arc<GuardedClass>, context: Arc<Context>) -> Result<Action, ReconcileError> {
    let name = guarded.name_any();
    let class = match &guarded.0 {
        Ok(class) => class,
        Err(error) => {
            unreadable(&name, &error.error, &context);
            return Ok(Action::await_change());
        }
    };
    let Some(users) = retention::settle(class, &context).await? else {
        return Ok(Action::await_change());
    };
    let found = load_into(class, &context).await;
    let status = status::derive(class, &found, &users, Timestamp::now());
    let api: Api<ProvisionerClass> = Api::all(context.client.clone());
    if status_patch::write(&api, &name, class.status.as_ref(), &status).await? {
        let old = class.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
        events::publish(&context.events, class, old, &status.conditions).await;
    }
    let key = format!("class/{name}");
    Ok(match &found {
        Found::Failed { problem, .. } if !problem.terminal => Action::requeue(context.backoff.failed(&key)),
        _ => {
            context.backoff.succeeded(&key);
            let pause = context.options.image_poll_interval;
            Action::requeue(if users.is_empty() { pause } else { pause.min(IN_USE_CHECK) })
        }
    })
}

/// After an error that left nothing to say: later again.
pub(crate) fn on_error(class: Arc<GuardedClass>, error: &ReconcileError, context: Arc<Context>) -> Action {
    let name = class.name_any();
    tracing::warn!(class = %name, %error, "reconcile failed");
    Action::requeue(context.backoff.failed(&format!("class/{name}")))
}

/// Has those that name a class that cannot be read told so. What it was before stays in use.
pub(crate) fn unreadable(name: &str, error: &str, context: &Context) {
    tracing::warn!(class = %name, %error, "not a legal ProvisionerClass");
    if context.classes.in_use(name).is_none() {
        context.classes.define(name, Err(format!("its specification cannot be read: {error}")));
    }
}

/// Loads the component of a class and puts it to use; tells what happened.
pub(crate) async fn load_into(class: &ProvisionerClass, context: &Context) -> Found {
    let name = class.name_any();
    let loaded = if Classes::is_builtin(&name) {
        let message = format!("{name} is built in and cannot be defined anew: choose another name");
        Err((Step::Resolve, Problem::terminal(Reason::InvalidSpec, message)))
    } else {
        load(class, Which::Newest, context).await
    };
    match loaded {
        Ok((usable, component)) => {
            context.classes.define(&name, Ok(usable));
            Found::Loaded(component)
        }
        Err((step, problem)) => {
            let in_use = context.classes.in_use(&name).is_some() || load_last(class, context).await;
            if !in_use {
                context.classes.define(&name, Err(problem.message.clone()));
            }
            Found::Failed { step, problem, in_use }
        }
    }
}

/// Puts the component to use that served a class last, before a restart; whether there is one.
pub(crate) async fn load_last(class: &ProvisionerClass, context: &Context) -> bool {
    let Some(last) = context.served.last(class) else { return false };
    match load(class, Which::Last(last), context).await {
        Ok((usable, _)) => {
            context.classes.define(&class.name_any(), Ok(usable));
            true
        }
        Err((_, problem)) => {
            tracing::debug!(class = %class.name_any(), message = %problem.message, "the component before cannot serve");
            false
        }
    }
}

/// Which artifact is loaded.
enum Which {
    /// The one that the reference stands for now.
    Newest,
    /// The one that served last.
    Last(ResolvedImage),
}

async fn load(
    class: &ProvisionerClass,
    which: Which,
    context: &Context,
) -> Result<(Class, Component), (Step, Problem)> {
    let at = |step: Step| move |problem: Problem| (step, problem);
    let limits = limits(class, &context.options.ceiling).map_err(at(Step::Resolve))?;
    let (pinned, wasm) = pull(class, which, context).await.map_err(at(Step::Resolve))?;
    if !context.options.allow_unsigned {
        let message = "the component is not signed by anybody whom this controller trusts: signatures are not verified by \
                       this version, so the controller must run with --allow-unsigned";
        return Err((Step::Verify, Problem::terminal(Reason::ProvisionerNotReady, message)));
    }
    let provisioner = match context.classes.in_use(&class.name_any()) {
        Some(used) if *used.provisioner.digest() == chandler_core::Digest::of(&wasm) => used.provisioner,
        _ => context.engine.load(&wasm).await.map_err(|error| (Step::of(&error), Problem::from(&error)))?,
    };
    context.served.note(class, &pinned);
    let component = component(&pinned, &provisioner);
    let defaults = class.spec.config.clone().unwrap_or_default();
    Ok((Class { provisioner, limits, defaults }, component))
}

async fn pull(class: &ProvisionerClass, which: Which, context: &Context) -> Result<(ImageReference, Vec<u8>), Problem> {
    let failed = |error| content(Reason::ImageNotResolved, &error);
    let reference: ImageReference =
        class.spec.image.parse().map_err(|error| failed(chandler_content::ContentError::Reference(error)))?;
    let credentials = match &class.spec.pull_secret {
        Some(secret) => images::credentials(context, User::ProvisionerClass(&class.name_any()), secret, &reference)
            .await
            .map_err(|message| Problem::transient(Reason::ImageNotResolved, message))?,
        None => None,
    };
    let access = ImageAccess { credentials, ..ImageAccess::default() };
    let resolved = match which {
        Which::Newest => context.images.resolve(&reference, &access).await.map_err(failed)?,
        Which::Last(last) => last,
    };
    let wasm = context.images.fetch_component(&resolved, &access, COMPONENT_BYTES).await.map_err(failed)?;
    Ok((resolved.pinned(), wasm))
}

/// The limits of the class, none above the administrator's ceiling.
fn limits(class: &ProvisionerClass, ceiling: &Limits) -> Result<Limits, Problem> {
    let asked = class.spec.limits.clone().unwrap_or_default().parse();
    let asked = asked.map_err(|error| Problem::terminal(Reason::InvalidSpec, error.to_string()))?;
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let limits = Limits {
        time: asked.timeout.unwrap_or(ceiling.time),
        memory: asked.memory.unwrap_or(ceiling.memory),
        read_bytes: asked.read_bytes.unwrap_or(ceiling.read_bytes),
        // A limit on reading is one number, not a multiple of the bundle's size.
        read_factor: if asked.read_bytes.is_some() { 0 } else { ceiling.read_factor },
        output_bytes: asked.output_bytes.unwrap_or(ceiling.output_bytes),
        objects: asked.objects.map_or(ceiling.objects, count),
        log_bytes: asked.log_bytes.unwrap_or(ceiling.log_bytes),
        ..ceiling.clone()
    };
    Ok(limits.bounded_by(ceiling))
}

fn component(pinned: &ImageReference, provisioner: &Provisioner) -> Component {
    let facts = provisioner.facts();
    Component {
        image: pinned.to_string(),
        digest: provisioner.digest().to_string(),
        name: Some(facts.name.clone()),
        version: Some(facts.version.clone()),
        contract_version: facts.contract.clone(),
        formats: facts.formats.clone(),
    }
}
