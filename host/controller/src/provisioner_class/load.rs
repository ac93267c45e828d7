//! Loads the component of a class: resolve, verify, pull, check, compile.

use std::time::Instant;

use chandler_api::{Component, ProvisionerClass, Reason};
use chandler_content::{ContentError, ImageAccess, ImageReference, RequiredSignatures, ResolvedImage};
use chandler_core::Digest;
use chandler_decisions::problem::Problem;
use chandler_engine::{Limits, LoadError};
use chandler_monitoring::{CallOutcome, HostClass};
use chandler_source::Grantee;
use kube::ResourceExt as _;

use super::{
    classes::{Artifact, Class, Classes},
    components::{COMPONENT_BYTES, Components},
    reconciler::ProvisionerClasses,
};
use crate::problem;

/// The type of the images of classes in metrics.
const COMPONENT: &str = "component";

/// Why a suspended class cannot be used.
const SUSPENDED: &str = "it is suspended, and the component that it had is not in the cache, or not signed as demanded now: with \
                         spec.suspend false, the controller loads the one that spec.image names";

/// The step at which loading failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoadStep {
    /// The specification is read, and the image is resolved; or it cannot be pulled.
    Resolve,
    /// The signatures are verified, before the component is pulled.
    Verify,
    /// The imports and exports are checked against the contract.
    Check,
    /// The component is compiled.
    Compile,
}

impl LoadStep {
    fn of(error: &LoadError) -> Self {
        match error {
            // The host fails in its work for the compiler: the checks before it only read the component.
            LoadError::Compile(_) | LoadError::Internal(_) => Self::Compile,
            _ => Self::Check,
        }
    }
}

/// The result of loading the component of a class.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LoadOutcome {
    /// The component is in use.
    Loaded(Component),
    /// The component could not be loaded.
    Failed {
        /// The step that failed.
        step: LoadStep,
        /// Why.
        problem: Problem,
        /// The earlier component that stays in use.
        in_use: Option<Component>,
    },
    /// The component is in use, and is not called for a while, for this reason.
    Quarantined(Component, String),
    /// No component is in use, and loading one takes a while.
    Loading,
}

/// Which artifact is loaded.
enum Wanted {
    /// The one that the reference resolves to now.
    Newest,
    /// The one that served the class last.
    Last(ResolvedImage),
}

impl ProvisionerClasses {
    /// Loads the component of a class and puts it into use. With `again`, one that is quarantined is compiled, too.
    pub(super) async fn load(&self, class: &ProvisionerClass, again: bool) -> LoadOutcome {
        let (name, classes) = (class.name_any(), &self.classes);
        classes.announce(&name, class.spec.priority);
        if class.spec.suspend && !Classes::is_builtin(&name) {
            return self.keep(class).await;
        }
        let loaded = if Classes::is_builtin(&name) {
            let message = format!("{name} is a built-in class and cannot be redefined: choose another name");
            Err((LoadStep::Resolve, Problem::terminal(Reason::InvalidSpec, message)))
        } else {
            self.load_artifact(class, Wanted::Newest, again).await
        };
        match loaded {
            Ok((usable, component)) => {
                classes.define(&name, usable);
                LoadOutcome::Loaded(component)
            }
            Err((step, problem)) => {
                let in_use = match classes.in_use(&name) {
                    Some(used) if self.may_run(class, &used) => Some(used),
                    // After a restart, or the signers have changed. It may be verified again.
                    _ if self.load_last(class).await => classes.in_use(&name),
                    _ => None,
                };
                let in_use = in_use.and_then(|used| component(&used));
                if in_use.is_none() {
                    classes.define_failed(&name, problem.message.clone());
                }
                LoadOutcome::Failed { step, problem, in_use }
            }
        }
    }

    /// Keeps the component that a suspended class has in use.
    async fn keep(&self, class: &ProvisionerClass) -> LoadOutcome {
        let (name, classes) = (class.name_any(), &self.classes);
        let is_in_use = classes.in_use(&name).is_some_and(|used| self.may_run(class, &used));
        // After a restart, or the signers have changed.
        if !is_in_use && !self.load_last(class).await {
            let problem = Problem::transient(Reason::ProvisionerNotReady, SUSPENDED.to_owned());
            classes.define_failed(&name, problem.message.clone());
            return LoadOutcome::Failed { step: LoadStep::Resolve, problem, in_use: None };
        }
        // An administrator lowers a limit during an incident: it holds at once.
        let limits = limits(class, &self.cluster.options.ceiling).ok();
        let used = classes.in_use(&name).map(|used| {
            let limits = limits.clone().unwrap_or_else(|| used.limits.clone());
            Class { suspended: true, limits, ..used }
        });
        let component = used.as_ref().and_then(component).unwrap_or_default();
        if let Some(used) = used {
            classes.define(&name, used);
        }
        LoadOutcome::Loaded(component)
    }

    /// Whether the component of a class that is in use has the signatures that it must have now.
    fn may_run(&self, class: &ProvisionerClass, used: &Class) -> bool {
        let Some(artifact) = &used.artifact else { return true };
        let Ok(image) = artifact.image.parse() else { return false };
        let required = self.components.required(&image, class.spec.verification.as_ref());
        required.is_ok_and(|required| required.is_none_or(|required| artifact.proof == Some(required.proof())))
    }

    /// Whether signatures are demanded of the component that a class names.
    pub(super) fn is_verified(&self, class: &ProvisionerClass) -> bool {
        let demanded = |image: ImageReference| {
            let required = self.components.sources.required_signatures(&image, class.spec.verification.as_ref());
            required.is_ok_and(|required| required.is_some())
        };
        class.spec.image.parse().is_ok_and(demanded)
    }

    /// Puts the component into use that served a class before a restart. Returns whether there is one.
    pub(super) async fn load_last(&self, class: &ProvisionerClass) -> bool {
        let Some(last) = self.served.last(class) else { return false };
        match self.load_artifact(class, Wanted::Last(last), false).await {
            Ok((usable, _)) => {
                self.classes.define(&class.name_any(), usable);
                true
            }
            Err((_, problem)) => {
                tracing::debug!(class = %class.name_any(), message = %problem.message, "failed to load the earlier component");
                false
            }
        }
    }

    async fn load_artifact(
        &self,
        class: &ProvisionerClass,
        wanted: Wanted,
        again: bool,
    ) -> Result<(Class, Component), (LoadStep, Problem)> {
        let at = |step: LoadStep| move |problem: Problem| (step, problem);
        let limits = limits(class, &self.cluster.options.ceiling).map_err(at(LoadStep::Resolve))?;
        let Pulled { image: pinned, proof, wasm } = self.pull(class, wanted).await?;
        let digest = Digest::of(&wasm);
        let provisioner = match self.classes.in_use(&class.name_any()) {
            Some(used) if *used.provisioner.digest() == digest => used.provisioner,
            _ => {
                if again {
                    self.components.engine.release_from_quarantine(&digest).await;
                }
                let loaded = self.components.engine.load(&wasm).await;
                loaded.map_err(|error| (LoadStep::of(&error), problem::loaded(&error)))?
            }
        };
        self.served.record(class, &pinned);
        let usable = Class {
            provisioner,
            limits,
            defaults: class.spec.config.clone().unwrap_or_default(),
            artifact: Some(Artifact {
                image: pinned.to_string(),
                pull_secret: class.spec.pull_secret.clone(),
                verification: class.spec.verification.clone(),
                proof,
                bytes: wasm.len() as u64,
            }),
            updates: class.spec.update_policy.unwrap_or_default(),
            suspended: class.spec.suspend,
        };
        let component = component(&usable).unwrap_or_default();
        Ok((usable, component))
    }

    /// Pulls a component, once its signatures are verified.
    async fn pull(&self, class: &ProvisionerClass, wanted: Wanted) -> Result<Pulled, (LoadStep, Problem)> {
        let began = Instant::now();
        let note = |outcome| {
            let host = HostClass::of_location(&class.spec.image);
            self.cluster.metrics.fetched(COMPONENT, host, outcome, began.elapsed());
        };
        let failed = |error: ContentError| {
            note(CallOutcome::Failed(error.reason()));
            let (step, reason) = match &error {
                ContentError::Unverified { .. } => (LoadStep::Verify, Reason::NoMatchingSignature),
                _ => (LoadStep::Resolve, Reason::ImageNotResolved),
            };
            (step, problem::source(reason, &error.into()))
        };
        let reference: ImageReference =
            class.spec.image.parse().map_err(|error| failed(ContentError::Reference(error)))?;
        let (name, secret) = (class.name_any(), class.spec.pull_secret.as_deref());
        let Components { images, sources, .. } = &self.components;
        let access = sources.image_access(Grantee::ProvisionerClass(&name), secret, &reference).await;
        let access = access
            .map_err(|error| (LoadStep::Resolve, Problem::transient(Reason::ImageNotResolved, error.to_string())))?;
        let resolved = match wanted {
            Wanted::Newest => images.resolve(&reference, &access).await.map_err(failed)?,
            Wanted::Last(last) => last,
        };
        let required = self.components.required(&reference, class.spec.verification.as_ref());
        let required = required.map_err(|unknown| (LoadStep::Verify, unknown.problem()))?;
        let proof = required.as_ref().map(RequiredSignatures::proof);
        let access = ImageAccess { signatures: required, ..access };
        let wasm = images.fetch_component(&resolved, &access, COMPONENT_BYTES).await.map_err(failed)?;
        note(CallOutcome::Completed);
        Ok(Pulled { image: resolved.pinned(), proof, wasm })
    }
}

/// A component that was pulled.
struct Pulled {
    /// The reference of its artifact by digest.
    image: ImageReference,
    /// What its signatures were verified with; `None` if none was demanded.
    proof: Option<Digest>,
    wasm: Vec<u8>,
}

/// The limits of a class, capped by the administrator's ceiling.
fn limits(class: &ProvisionerClass, ceiling: &Limits) -> Result<Limits, Problem> {
    let requested = class.spec.limits.clone().unwrap_or_default().parse();
    let requested = requested.map_err(|error| Problem::terminal(Reason::InvalidSpec, error.to_string()))?;
    let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let limits = Limits {
        time: requested.timeout.unwrap_or(ceiling.time),
        memory: requested.memory.unwrap_or(ceiling.memory),
        read_bytes: requested.read_bytes.unwrap_or(ceiling.read_bytes),
        // A limit that the class sets is absolute; only the default grows with the bundle.
        read_factor: if requested.read_bytes.is_some() { 0 } else { ceiling.read_factor },
        output_bytes: requested.output_bytes.unwrap_or(ceiling.output_bytes),
        objects: requested.objects.map_or(ceiling.objects, count),
        log_bytes: requested.log_bytes.unwrap_or(ceiling.log_bytes),
        ..ceiling.clone()
    };
    Ok(limits.bounded_by(ceiling))
}

/// The component of a class, for the status; `None` for a built-in class.
fn component(class: &Class) -> Option<Component> {
    let (facts, artifact) = (class.provisioner.facts(), class.artifact.as_ref()?);
    Some(Component {
        image: artifact.image.clone(),
        digest: class.provisioner.digest().to_string(),
        name: Some(facts.name.clone()),
        version: Some(facts.version.clone()),
        contract_version: facts.contract.clone(),
        formats: facts.formats.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use chandler_engine::CompileError;

    use super::*;

    #[test]
    fn a_failure_of_the_compiler_or_its_host_is_reported_as_one_of_the_compilation() {
        let failed = |error: LoadError| (LoadStep::of(&error), error.reason());
        let compile = |error: CompileError| failed(LoadError::Compile(error));
        assert_eq!(compile(CompileError::Timeout(Duration::from_secs(1))), (LoadStep::Compile, Reason::CompilerBusy));
        assert_eq!(compile(CompileError::Refused("no".to_owned())), (LoadStep::Compile, Reason::CompileFailed));
        assert_eq!(failed(LoadError::Internal("disk".to_owned())), (LoadStep::Compile, Reason::InternalError));
        assert_eq!(failed(LoadError::Facts("no name".to_owned())), (LoadStep::Check, Reason::InvalidComponent));
    }
}
