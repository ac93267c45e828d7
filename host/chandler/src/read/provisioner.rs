//! Chooses and loads the provisioner of a bundle, on an engine in this process.

use std::{env, path::Path, sync::Arc};

use chandler_api::ProvisionerInUse;
use chandler_builtin::{BUILTINS, Builtin, DetectError, Provisioners};
use chandler_core::Content;
use chandler_engine::{CallError, Compiler, Engine, EngineOptions, Limits, Provisioner};
use chandler_values::Redactor;
use serde_json::{Map, Value};

use super::{cache, file, unrecognised};
use crate::{
    CommandError,
    view::diagnostics::{self, Sources},
};

/// The first argument of the child process that compiles a component.
pub const COMPILE: &str = "compile-component";

/// The provisioner of a bundle.
#[derive(Clone)]
pub struct ChosenProvisioner {
    /// The class, or the path of the component file.
    pub name: String,
    /// The format that it detected; `None` if the user named the provisioner.
    pub format: Option<String>,
    /// The provisioner.
    pub provisioner: Provisioner,
    /// The defaults of its class for the configuration.
    pub defaults: Map<String, Value>,
    /// Whether it comes with this command.
    pub is_builtin: bool,
}

impl ChosenProvisioner {
    /// The provisioner as a status names it.
    pub fn in_use(&self) -> ProvisionerInUse {
        let facts = self.provisioner.facts();
        ProvisionerInUse {
            class: self.name.clone(),
            name: Some(facts.name.clone()),
            version: Some(facts.version.clone()),
            digest: self.provisioner.digest().to_string(),
            ..ProvisionerInUse::default()
        }
    }
}

/// The compiler: a child process with limited resources that runs this program again.
pub fn compiler() -> Result<Compiler, CommandError> {
    let program = env::current_exe()
        .map_err(|error| CommandError::failed("failed to find the path of this program").because(&error))?;
    Ok(Compiler::Child { program, arguments: vec![COMPILE.into()] })
}

/// The built-in provisioners, on an engine that stores compiled components in the cache.
pub fn provisioners(cache: &Path) -> Result<Provisioners, CommandError> {
    let options =
        EngineOptions { cache_directory: Some(cache::code(cache)), compiler: compiler()?, ..EngineOptions::default() };
    let engine = Engine::new(options).map_err(|error| {
        CommandError::failed("failed to start the engine")
            .because(&error)
            .hint("set another cache directory with --cache-directory")
    })?;
    Ok(Provisioners::new(engine))
}

/// The provisioner that the user names: a built-in class, or a component file.
pub async fn named(provisioners: &Provisioners, name: &str) -> Result<ChosenProvisioner, CommandError> {
    if let Some(provisioner) = provisioners.get(name).await.map_err(|error| not_loaded(name, &error))? {
        let (name, defaults) = (name.to_owned(), Map::new());
        return Ok(ChosenProvisioner { name, format: None, provisioner, defaults, is_builtin: true });
    }
    if !is_file(name) {
        return Err(CommandError::usage(format!("no provisioner class {name:?}")).hint(classes()));
    }
    let wasm = file::read(Path::new(name), EngineOptions::default().component_bytes).map_err(|error| {
        CommandError::usage(format!("failed to read the provisioner {name}")).because(&error).hint(classes())
    })?;
    let provisioner = provisioners.engine().load(&wasm).await.map_err(|error| not_loaded(name, &error))?;
    let (name, defaults) = (name.to_owned(), Map::new());
    Ok(ChosenProvisioner { name, format: None, provisioner, defaults, is_builtin: false })
}

/// Whether this is the name of a class that is not built in.
pub fn is_custom(name: &str) -> bool {
    chandler_builtin::find(name).is_none() && !is_file(name)
}

fn is_file(name: &str) -> bool {
    name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "wasm")
}

/// The names that [`named`] knows.
pub fn classes() -> String {
    let classes = BUILTINS.iter().map(|builtin| builtin.class).collect::<Vec<_>>().join(", ");
    format!("the built-in classes are {classes}; the name of a component file ends in .wasm")
}

/// The first built-in provisioner that detects the format of the content.
pub async fn detected(
    provisioners: &Provisioners,
    content: &Arc<dyn Content>,
) -> Result<ChosenProvisioner, CommandError> {
    let (builtin, format) = detect(provisioners, content).await?;
    let mut chosen = named(provisioners, builtin.class).await?;
    chosen.format = Some(format);
    Ok(chosen)
}

/// The first built-in class whose provisioner detects the format of the content, and that format.
pub async fn detect(
    provisioners: &Provisioners,
    content: &Arc<dyn Content>,
) -> Result<(&'static Builtin, String), CommandError> {
    recognised(provisioners, content).await?.ok_or_else(|| unrecognised::error(content.as_ref()))
}

/// Like [`detect`], but `None` if no built-in provisioner detects the format.
pub async fn recognised(
    provisioners: &Provisioners,
    content: &Arc<dyn Content>,
) -> Result<Option<(&'static Builtin, String)>, CommandError> {
    provisioners.detect(content, &Limits::default()).await.map_err(|error| match &error {
        DetectError::Call { class, error } => call_failed(class, error, &Sources::default()),
        DetectError::Load(_) => CommandError::failed("failed to detect the format of the bundle").because(&error),
    })
}

/// The error for a failed call of a provisioner, with its findings.
pub fn call_failed(name: &str, error: &CallError, sources: &Sources<'_>) -> CommandError {
    call_failed_hiding(name, error, sources, &Redactor::default())
}

/// Like [`call_failed`], with these values hidden.
pub fn call_failed_hiding(name: &str, error: &CallError, sources: &Sources<'_>, redactor: &Redactor) -> CommandError {
    let mut diagnostics = error.diagnostics().to_vec();
    for diagnostic in &mut diagnostics {
        redactor.hide(&mut diagnostic.message);
        diagnostic.help.iter_mut().for_each(|help| redactor.hide(help));
        diagnostic.related.iter_mut().for_each(|related| redactor.hide(&mut related.message));
    }
    let findings = diagnostics::findings(&diagnostics, sources);
    let failed = match error {
        CallError::InvalidContent(_) => CommandError::failed("the content of the bundle is invalid"),
        CallError::InvalidConfiguration(_) => CommandError::failed("the configuration is invalid"),
        CallError::UnsupportedContent(_) => {
            CommandError::failed(format!("the bundle needs a feature that provisioner {name} does not support"))
        }
        _ if redactor.is_empty() => CommandError::failed(format!("provisioner {name} failed")).because(error),
        _ => CommandError::failed(format!("provisioner {name} failed: {}", redactor.text(&error.to_string()))),
    };
    let failed = match error {
        CallError::InvalidConfiguration(_) => failed.hint(
            "fix the fields that the findings name; `chandler lint BUNDLE --config FILE` checks the configuration",
        ),
        CallError::InvalidContent(_) => {
            failed.hint("fix the lines that the findings name; `chandler lint BUNDLE` lists all of them")
        }
        CallError::UnsupportedContent(_) => {
            failed.hint("use another version of the bundle, or another class: --provisioner")
        }
        CallError::Starved { .. } => failed.hint("run the command again when the machine is less busy"),
        _ => failed.hint("report the failure to the author of the provisioner"),
    };
    failed.with_findings(findings)
}

fn not_loaded(name: &str, error: &chandler_engine::LoadError) -> CommandError {
    CommandError::failed(format!("failed to load provisioner {name}"))
        .because(error)
        .hint("a provisioner is a component of the contract in wit/: build it with the guest SDK")
}
