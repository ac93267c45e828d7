//! The classes in use, by name.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

use chandler_api::Reason;
use chandler_builtin::Provisioners;
use chandler_engine::{Limits, Provisioner};
use chandler_runtime::WatchSelector;
use serde_json::{Map, Value};

use crate::problem::Problem;

/// A class that is ready for use.
#[derive(Clone)]
pub(crate) struct Class {
    /// Its component, ready to be called.
    pub(crate) provisioner: Provisioner,
    /// The limits of one call.
    pub(crate) limits: Limits,
    /// The defaults for the configuration of a BundleDeployment.
    pub(crate) defaults: Map<String, Value>,
}

/// All classes: built-in ones, and those that ProvisionerClasses define.
pub(crate) struct Classes {
    builtin: Provisioners,
    ceiling: Limits,
    selector: WatchSelector,
    defined: RwLock<BTreeMap<String, Result<Class, String>>>,
}

impl Classes {
    /// The built-in classes, with the ceiling as their limits. `selector` selects the ProvisionerClasses that define others.
    pub(crate) fn new(builtin: Provisioners, ceiling: Limits, selector: WatchSelector) -> Self {
        Self { builtin, ceiling, selector, defined: RwLock::default() }
    }

    /// The class of this name. A built-in class cannot be redefined: one object would change the meaning of all bundles.
    pub(crate) async fn get(&self, name: &str) -> Result<Class, Problem> {
        if let Some(provisioner) = self.builtin.get(name).await.map_err(|error| Problem::from(&error))? {
            return Ok(Class { provisioner, limits: self.ceiling.clone(), defaults: Map::new() });
        }
        let defined = self.defined.read().unwrap_or_else(PoisonError::into_inner);
        match defined.get(name) {
            Some(Ok(class)) => Ok(class.clone()),
            Some(Err(message)) => {
                Err(Problem::transient(Reason::ProvisionerNotReady, format!("ProvisionerClass {name}: {message}")))
            }
            None => Err(Problem::transient(Reason::ProvisionerMissing, missing(name, &self.selector))),
        }
    }

    /// Loads the built-in classes. Where that fails, the first BundleDeployment that uses the class reports it.
    pub(crate) async fn load_builtin(&self) {
        for (class, error) in self.builtin.load_all().await {
            tracing::warn!(class, %error, "failed to load a built-in provisioner");
        }
    }

    /// The class of this name that a ProvisionerClass defines, if it is ready for use.
    pub(crate) fn in_use(&self, name: &str) -> Option<Class> {
        self.defined.read().unwrap_or_else(PoisonError::into_inner).get(name)?.as_ref().ok().cloned()
    }

    /// Defines a class, or the reason why it is not ready.
    pub(crate) fn define(&self, name: &str, class: Result<Class, String>) {
        self.defined.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), class);
    }

    /// Removes a class. Returns whether it was defined. Calls in progress are not affected.
    pub(crate) fn remove(&self, name: &str) -> bool {
        self.defined.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// The names of the classes that ProvisionerClasses define.
    pub(crate) fn defined(&self) -> Vec<String> {
        self.defined.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Whether this is the name of a built-in class.
    pub(crate) fn is_builtin(name: &str) -> bool {
        chandler_builtin::find(name).is_some()
    }
}

/// The class of rukpak for Helm charts, which this version has no provisioner for.
const HELM: &str = "core-rukpak-io-helm";

fn missing(name: &str, selector: &WatchSelector) -> String {
    if name == HELM {
        return format!(
            "no provisioner class {name:?}: this version has no provisioner for Helm charts; package the output of `helm template` as a \
             plain+v0 bundle, or create a ProvisionerClass of that name"
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
        assert!(helm.contains("no provisioner for Helm charts") && helm.contains("helm template"), "{helm}");
        let message = |selector: &str| missing("sail", &selector.parse().expect("a selector"));
        insta::assert_snapshot!(format!("{}\n{}", message(""), message("shard in (a,b)")), @r#"
        no provisioner class "sail": create a ProvisionerClass of that name, or use one of core-rukpak-io-registry, core-rukpak-io-resolveset, core-rukpak-io-plain
        no provisioner class "sail" among those that this controller watches: create a ProvisionerClass of that name with labels that match --watch-selector "shard in (a,b)", or use one of core-rukpak-io-registry, core-rukpak-io-resolveset, core-rukpak-io-plain
        "#);
    }
}
