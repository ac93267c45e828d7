//! Chooses the provisioner of a class or a format.

use std::sync::Arc;

use chandler_core::Content;
use chandler_engine::{CallError, Engine, Limits, LoadError, Provisioner};
use futures::future::join_all;
use tokio::sync::OnceCell;

use crate::{BUILTINS, Builtin};

/// The built-in provisioners on an engine. Each is compiled (or read from the code cache) on first use.
pub struct Provisioners {
    engine: Engine,
    loaded: Vec<(&'static Builtin, OnceCell<Provisioner>)>,
}

/// Why no provisioner could be chosen.
#[derive(Debug)]
pub enum DetectError {
    /// A component could not be loaded.
    Load(LoadError),
    /// `detect` of a component failed.
    Call {
        /// The class of the component.
        class: &'static str,
        /// The error.
        error: CallError,
    },
}

impl std::fmt::Display for DetectError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Load(error) => write!(f, "failed to load a provisioner: {error}"),
            Self::Call { class, error } => {
                write!(f, "provisioner {class} failed to detect the format of the bundle: {error}")
            }
        }
    }
}

impl std::error::Error for DetectError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Load(error) => Some(error),
            Self::Call { error, .. } => Some(error),
        }
    }
}

impl Provisioners {
    /// The built-in provisioners, not loaded yet.
    pub fn new(engine: Engine) -> Self {
        Self { engine, loaded: BUILTINS.iter().map(|builtin| (builtin, OnceCell::new())).collect() }
    }

    /// The engine that runs them.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The provisioner of a built-in class, or `None` if the class is not built in.
    pub async fn get(&self, class: &str) -> Result<Option<Provisioner>, LoadError> {
        let Some((builtin, cell)) = self.loaded.iter().find(|(builtin, _)| builtin.class == class) else {
            return Ok(None);
        };
        cell.get_or_try_init(|| self.engine.load(builtin.component)).await.cloned().map(Some)
    }

    /// Loads all of them, so that the first bundle does not wait until they are compiled. Returns the classes that could not be
    /// loaded; the next use tries again.
    pub async fn load_all(&self) -> Vec<(&'static str, LoadError)> {
        let loads = self.loaded.iter().map(async |(builtin, cell)| {
            let loaded = cell.get_or_try_init(|| self.engine.load(builtin.component)).await;
            loaded.err().map(|error| (builtin.class, error))
        });
        join_all(loads).await.into_iter().flatten().collect()
    }

    /// The first class whose provisioner recognises the content, and the format that it returned.
    pub async fn detect(
        &self,
        content: &Arc<dyn Content>,
        limits: &Limits,
    ) -> Result<Option<(&'static Builtin, String)>, DetectError> {
        for (builtin, cell) in &self.loaded {
            let provisioner =
                cell.get_or_try_init(|| self.engine.load(builtin.component)).await.map_err(DetectError::Load)?;
            let format = provisioner.detect(Arc::clone(content), limits).await;
            let format = format.map_err(|error| DetectError::Call { class: builtin.class, error })?;
            if let Some(format) = format {
                return Ok(Some((builtin, format)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use chandler_engine::EngineOptions;

    use super::*;

    #[tokio::test]
    async fn all_are_loaded_before_the_first_use() {
        let engine = Engine::new(EngineOptions::default()).expect("an engine");
        let provisioners = Provisioners::new(engine);
        assert!(provisioners.load_all().await.is_empty());
        assert!(provisioners.loaded.iter().all(|(_, cell)| cell.initialized()));
    }
}
