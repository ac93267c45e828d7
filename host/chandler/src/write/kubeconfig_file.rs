//! The kubeconfig of a control plane in this process (`chandler dev --keep`).

use std::{
    io::Write as _,
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::control_plane::ControlPlane;
use crate::{
    CommandError,
    view::{output, progress::Progress},
};

/// The name of the kubeconfig in the data directory.
const KUBECONFIG: &str = "kubeconfig";

/// A kubeconfig that was written.
pub enum KubeconfigFile {
    /// Dropping the value removes it.
    Temporary(NamedTempFile),
    /// It is in the data directory.
    Stored(PathBuf),
}

impl KubeconfigFile {
    fn path(&self) -> &Path {
        match self {
            Self::Temporary(file) => file.path(),
            Self::Stored(path) => path,
        }
    }
}

/// Writes the kubeconfig and prints its path.
pub fn write(plane: &ControlPlane, progress: &Progress) -> Result<KubeconfigFile, CommandError> {
    let failed = |error: &(dyn std::error::Error + 'static)| {
        CommandError::failed("failed to write the kubeconfig").because(error)
    };
    let kubeconfig = plane.cluster().kubeconfig();
    let file = match plane.data() {
        Some(data) => {
            data.keep_secret(KUBECONFIG, &kubeconfig).map_err(|error| failed(&error))?;
            KubeconfigFile::Stored(std::path::absolute(data.path().join(KUBECONFIG)).map_err(|error| failed(&error))?)
        }
        None => KubeconfigFile::Temporary(temporary(&kubeconfig).map_err(|error| failed(&error))?),
    };
    let path = file.path().display();
    progress.report("kubeconfig", &path.to_string());
    output::print(&format!("export KUBECONFIG={path}\n"))?;
    Ok(file)
}

/// Writes a temporary file that only its owner can read.
fn temporary(text: &str) -> std::io::Result<NamedTempFile> {
    // tempfile creates files with mode 0600.
    let mut file = tempfile::Builder::new().prefix("chandler-").suffix(".kubeconfig").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}
