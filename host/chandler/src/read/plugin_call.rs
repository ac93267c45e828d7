//! Opens a bundle to call a component with it.

use std::path::Path;

use chandler_engine::Provisioner;

use super::{
    classes::ClusterClasses,
    cluster::ConnectionOptions,
    provisioner,
    rendering::{self, BundleOptions, OpenedBundle},
};
use crate::{CommandError, view::text::one_line};

/// A component, a bundle, and the request.
#[derive(Clone, Debug, Default)]
pub struct CallOptions {
    /// The bundle, with the component as its provisioner.
    pub bundle: BundleOptions,
    /// The kinds that the cluster serves.
    pub api_kinds: Vec<String>,
}

/// Opens the bundle and loads the component.
pub async fn open(options: &CallOptions) -> Result<OpenedBundle, CommandError> {
    options.bundle.provisioner.as_deref().map_or(Ok(()), is_local)?;
    let mut opened = rendering::open(&options.bundle, ClusterClasses::At(&ConnectionOptions::default())).await?;
    opened.request.target.api_kinds.clone_from(&options.api_kinds);
    opened.request.target.api_kinds.sort_unstable();
    Ok(opened)
}

/// The component of a file or of a built-in class.
pub async fn component(name: &str, cache: &Path) -> Result<Provisioner, CommandError> {
    is_local(name)?;
    Ok(provisioner::named(&provisioner::provisioners(cache)?, name).await?.provisioner)
}

/// Fails for a class of a cluster.
fn is_local(name: &str) -> Result<(), CommandError> {
    if provisioner::is_custom(name) {
        let message = format!("{} is neither a component file nor a built-in class", one_line(name));
        return Err(CommandError::usage(message).hint(provisioner::classes()));
    }
    Ok(())
}
