//! Class: the name of a provisioner class becomes a component that can be called.

use chandler_api::ProvisionerInUse;
use chandler_decisions::problem::Problem;

use crate::provisioner_class::{Class, Classes};

/// A class that can be used, and what the status reports about it.
pub(super) struct ResolvedClass {
    pub(super) class: Class,
    pub(super) in_use: ProvisionerInUse,
}

/// No class of this name can be used.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.message)]
pub(crate) struct ClassError(pub(crate) Problem);

/// The class of a name.
pub(super) async fn resolve(classes: &Classes, name: &str) -> Result<ResolvedClass, ClassError> {
    classes.get(name).await.map(|class| resolved(name, class, None)).map_err(ClassError)
}

/// A class that can be used; `format` is the format that its component recognised, if it was detected.
pub(super) fn resolved(name: &str, class: Class, format: Option<String>) -> ResolvedClass {
    let facts = class.provisioner.facts();
    let in_use = ProvisionerInUse {
        class: name.to_owned(),
        name: Some(facts.name.clone()),
        version: Some(facts.version.clone()),
        digest: class.provisioner.digest().to_string(),
        image: class.artifact.as_ref().map(|artifact| artifact.image.clone()),
        format,
    };
    ResolvedClass { class, in_use }
}
