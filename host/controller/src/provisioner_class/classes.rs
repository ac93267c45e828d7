//! The classes in use, by name.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicU64, Ordering},
};

use chandler_api::{Reason, UpdatePolicy, Verification};
use chandler_builtin::Provisioners;
use chandler_core::Digest;
use chandler_decisions::{problem::Problem, staged::Stage, updates::Turn};
use chandler_engine::{Limits, LoadError, Provisioner};
use chandler_runtime::WatchSelector;
use futures::future::join_all;
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};

use super::earlier::EarlierComponents;
use crate::problem;

/// A class that is ready for use.
#[derive(Clone)]
pub(crate) struct Class {
    /// Its component, ready to be called.
    pub(crate) provisioner: Provisioner,
    /// The limits of one call.
    pub(crate) limits: Limits,
    /// The defaults for the configuration of a BundleDeployment.
    pub(crate) defaults: Map<String, Value>,
    /// The artifact of the component; `None` for a built-in class.
    pub(crate) artifact: Option<Artifact>,
    /// When installed releases get a newer component. The components of built-in classes are updated with the controller.
    pub(crate) updates: UpdatePolicy,
    /// Whether no installed release gets another component, whatever `updates` is.
    pub(crate) suspended: bool,
}

/// The artifact of a component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Artifact {
    /// Its reference by digest.
    pub(crate) image: String,
    /// The name of the pull secret of the class.
    pub(crate) pull_secret: Option<String>,
    /// The signatures that the class demands.
    pub(crate) verification: Option<Verification>,
    /// What its signatures were verified with: the digest of the policies and of the trusted root. `None` if none was demanded.
    pub(crate) proof: Option<Digest>,
    /// The size of the component in bytes.
    pub(crate) bytes: u64,
}

/// Why a class cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// Its component is being loaded for the first time.
    Loading,
    /// Its component could not be loaded.
    Failed(String),
}

/// A class that may be detected for a bundle.
pub(crate) struct Offer {
    /// Its name.
    pub(crate) name: String,
    /// Its priority.
    pub(crate) priority: i32,
    /// Whether it is built in.
    pub(crate) is_builtin: bool,
    /// The class, or why it cannot be used.
    pub(crate) class: Result<Class, NotReady>,
}

/// A class that a ProvisionerClass defines.
struct Defined {
    priority: i32,
    class: Result<Class, NotReady>,
    /// The change that made it.
    change: u64,
}

/// All classes: built-in ones, and those that ProvisionerClasses define.
pub(crate) struct Classes {
    builtin: Provisioners,
    ceiling: Limits,
    selector: WatchSelector,
    defined: RwLock<BTreeMap<String, Defined>>,
    earlier: EarlierComponents,
    /// How far staged updates are, by class.
    stages: RwLock<BTreeMap<String, Stage>>,
    /// The classes whose image is to be resolved at once.
    asked: Mutex<BTreeSet<String>>,
    /// Counts the changes of what rendering reads of a class.
    changes: AtomicU64,
}

/// The priority of the built-in classes.
const BUILTIN_PRIORITY: i32 = 0;

impl Classes {
    /// The built-in classes, with the ceiling as their limits. `selector` selects the ProvisionerClasses that define others.
    pub(crate) fn new(builtin: Provisioners, ceiling: Limits, selector: WatchSelector) -> Self {
        Self {
            builtin,
            ceiling,
            selector,
            defined: RwLock::default(),
            earlier: EarlierComponents::default(),
            stages: RwLock::default(),
            asked: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    /// The class of this name. A built-in class cannot be redefined: one object would change the meaning of all bundles.
    pub(crate) async fn get(&self, name: &str) -> Result<Class, Problem> {
        if let Some(class) = self.builtin(name).await.map_err(|error| problem::loaded(&error))? {
            return Ok(class);
        }
        let defined = self.defined.read();
        match defined.get(name).map(|defined| &defined.class) {
            Some(Ok(class)) => Ok(class.clone()),
            Some(Err(reason)) => {
                Err(Problem::transient(Reason::ProvisionerNotReady, format!("ProvisionerClass {name}: {reason}")))
            }
            None => Err(Problem::transient(Reason::ProvisionerMissing, missing(name, &self.selector))),
        }
    }

    /// All classes, whether they can be used or not: the built-in ones, narrower formats first, and the others by name.
    pub(crate) async fn offers(&self) -> Vec<Offer> {
        let builtin = chandler_builtin::BUILTINS.iter().map(async |builtin| {
            let class = match self.builtin(builtin.class).await {
                Ok(Some(class)) => Ok(class),
                Ok(None) => return None,
                Err(error) => Err(NotReady::Failed(error.to_string())),
            };
            Some(Offer { name: builtin.class.to_owned(), priority: BUILTIN_PRIORITY, is_builtin: true, class })
        });
        let mut offers: Vec<Offer> = join_all(builtin).await.into_iter().flatten().collect();
        let defined = self.defined.read();
        offers.extend(defined.iter().filter(|(name, _)| !Self::is_builtin(name)).map(
            |(name, Defined { priority, class, .. })| Offer {
                name: name.clone(),
                priority: *priority,
                is_builtin: false,
                class: class.clone(),
            },
        ));
        offers
    }

    /// The built-in class of this name; `None` if there is none.
    async fn builtin(&self, name: &str) -> Result<Option<Class>, LoadError> {
        let provisioner = self.builtin.get(name).await?;
        Ok(provisioner.map(|provisioner| Class {
            provisioner,
            limits: self.ceiling.clone(),
            defaults: Map::new(),
            artifact: None,
            updates: UpdatePolicy::Automatic,
            suspended: false,
        }))
    }

    /// Loads the built-in classes, before BundleDeployments need them. If that fails, the first BundleDeployment that uses the class reports it.
    /// Never completes.
    pub(crate) async fn load_builtin(&self) {
        for (class, error) in self.builtin.load_all().await {
            tracing::warn!(class, %error, "failed to load a built-in provisioner");
        }
        std::future::pending::<()>().await;
    }

    /// The class of this name that a ProvisionerClass defines, if it is ready for use.
    pub(crate) fn in_use(&self, name: &str) -> Option<Class> {
        self.defined.read().get(name)?.class.as_ref().ok().cloned()
    }

    /// Notes a class whose component is about to be loaded, and its priority. A component that is in use stays in use.
    pub(crate) fn announce(&self, name: &str, priority: i32) {
        let mut all = self.defined.write();
        let new = || Defined { priority, class: Err(NotReady::Loading), change: self.next_change() };
        let defined = all.entry(name.to_owned()).or_insert_with(new);
        if defined.priority != priority {
            (defined.priority, defined.change) = (priority, self.next_change());
        }
    }

    /// Puts the component of a class into use.
    pub(crate) fn define(&self, name: &str, class: Class) {
        self.settle(name, Ok(class));
    }

    /// Notes why a class cannot be used.
    pub(crate) fn define_failed(&self, name: &str, message: String) {
        self.settle(name, Err(NotReady::Failed(message)));
    }

    fn settle(&self, name: &str, class: Result<Class, NotReady>) {
        let mut all = self.defined.write();
        let known = all.get(name);
        let priority = known.map_or(0, |defined| defined.priority);
        let unchanged = known.filter(|defined| is_same(&defined.class, &class)).map(|defined| defined.change);
        let change = unchanged.unwrap_or_else(|| self.next_change());
        let digest = class.as_ref().ok().map(|class| class.provisioner.digest().clone());
        let replaced = all.insert(name.to_owned(), Defined { priority, class, change });
        // Installed releases may keep the component that was replaced.
        if let Some(Defined { class: Ok(before), .. }) = replaced
            && digest.as_ref() != Some(before.provisioner.digest())
            && let Some(artifact) = before.artifact
        {
            self.earlier.keep(before.provisioner, artifact.bytes, artifact.proof);
        }
    }

    fn next_change(&self) -> u64 {
        self.changes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last change of what rendering reads of a class; 0 if it is not defined. A change of its status alone is none.
    pub(crate) fn last_change(&self, name: &str) -> u64 {
        self.defined.read().get(name).map_or(0, |defined| defined.change)
    }

    /// The components that no class has any more.
    pub(super) fn earlier(&self) -> &EarlierComponents {
        &self.earlier
    }

    /// The digests and sizes of all components that were pulled and are in use.
    pub(crate) fn pulled(&self) -> Vec<(Digest, u64)> {
        let defined = self.defined.read();
        let current = defined.values().filter_map(|defined| defined.class.as_ref().ok());
        let current = current.filter_map(|class| {
            class.artifact.as_ref().map(|artifact| (class.provisioner.digest().clone(), artifact.bytes))
        });
        current.chain(self.earlier.list()).collect()
    }

    /// Removes a class. Returns whether it was defined. Calls in progress are not affected.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.stages.write().remove(name);
        self.asked.lock().remove(name);
        self.defined.write().remove(name).is_some()
    }

    /// Whose turn it is in the update of a class to this component. Before the first decision about the stage, others come first.
    pub(crate) fn turn(&self, class: &str, component: &str, deployment: &str) -> Turn {
        match self.stages.read().get(class) {
            Some(stage) if stage.goes_back(deployment, component) => Turn::Back,
            Some(stage) if stage.admits(deployment, component) => Turn::Now,
            _ => Turn::Later,
        }
    }

    /// Whether the update of a class to this component failed for a BundleDeployment.
    pub(super) fn has_failed(&self, class: &str, component: &str, deployment: &str) -> bool {
        self.stages.read().get(class).is_some_and(|stage| stage.has_failed(deployment, component))
    }

    /// How far the update of a class is, as it was noted last.
    pub(super) fn stage(&self, class: &str) -> Option<Stage> {
        self.stages.read().get(class).cloned()
    }

    /// Notes how far the update of a class is; `None` if it is not staged. Returns whether it is another stage than before.
    pub(super) fn set_stage(&self, class: &str, stage: Option<Stage>) -> bool {
        let mut all = self.stages.write();
        let before = match &stage {
            Some(stage) => all.insert(class.to_owned(), stage.clone()),
            None => all.remove(class),
        };
        before != stage
    }

    /// Makes the next reconcile of a class resolve its image.
    pub(crate) fn ask(&self, class: &str) {
        self.asked.lock().insert(class.to_owned());
    }

    /// Whether the image of a class is to be resolved at once; it is then not asked for any more.
    pub(super) fn take_asked(&self, class: &str) -> bool {
        self.asked.lock().remove(class)
    }

    /// The names of the classes that ProvisionerClasses define.
    pub(crate) fn defined(&self) -> Vec<String> {
        self.defined.read().keys().cloned().collect()
    }

    /// Whether this is the name of a built-in class.
    pub(crate) fn is_builtin(name: &str) -> bool {
        chandler_builtin::find(name).is_some()
    }
}

/// Whether rendering reads the same of both.
fn is_same(one: &Result<Class, NotReady>, other: &Result<Class, NotReady>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let Class { provisioner, limits, defaults, artifact, updates, suspended } = one;
            *provisioner.digest() == *other.provisioner.digest()
                && *limits == other.limits
                && *defaults == other.defaults
                && *artifact == other.artifact
                && (*updates, *suspended) == (other.updates, other.suspended)
        }
        (Err(one), Err(other)) => one == other,
        _ => false,
    }
}

impl std::fmt::Display for NotReady {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Loading => f.write_str("its component is being loaded"),
            Self::Failed(message) => f.write_str(message),
        }
    }
}

/// rukpak's class for Helm charts, whose provisioner is not built in.
const HELM: &str = "core-rukpak-io-helm";

fn missing(name: &str, selector: &WatchSelector) -> String {
    if name == HELM {
        return format!(
            "no provisioner class {name:?}: the provisioner `helm` for charts is not built in; publish its component, and create a \
             ProvisionerClass of that name with it (docs/helm.md)"
        );
    }
    let builtin = chandler_builtin::BUILTINS.iter().map(|builtin| builtin.class).collect::<Vec<_>>().join(", ");
    if selector.selects_all() {
        return format!(
            "no provisioner class {name:?}: create a ProvisionerClass of that name, or use one of {builtin}"
        );
    }
    format!(
        "no provisioner class {name:?} among those that this controller watches: create a ProvisionerClass of that name with \
         labels that match --watch-selector {:?}, or use one of {builtin}",
        selector.to_string()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_for_a_missing_class_names_the_watch_selector() {
        let helm = missing(HELM, &WatchSelector::default());
        insta::assert_snapshot!(helm, @r#"no provisioner class "core-rukpak-io-helm": the provisioner `helm` for charts is not built in; publish its component, and create a ProvisionerClass of that name with it (docs/helm.md)"#);
        let message = |selector: &str| missing("sail", &selector.parse().expect("a selector"));
        insta::assert_snapshot!(format!("{}\n{}", message(""), message("shard in (a,b)")), @r#"
        no provisioner class "sail": create a ProvisionerClass of that name, or use one of core-rukpak-io-registry, core-rukpak-io-resolveset, core-rukpak-io-plain
        no provisioner class "sail" among those that this controller watches: create a ProvisionerClass of that name with labels that match --watch-selector "shard in (a,b)", or use one of core-rukpak-io-registry, core-rukpak-io-resolveset, core-rukpak-io-plain
        "#);
    }
}
