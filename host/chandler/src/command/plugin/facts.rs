//! What an author declares about a component, and the file that has it.

use std::path::Path;

use chandler_componentize::Facts;
use chandler_engine::Inspection;

use crate::{
    CommandError,
    read::component::{self, Described},
    view::{output, terminal::Terminal, text::one_line},
    write::component_file,
};

/// The longest name, version or format, in bytes, which hosts accept.
const LONGEST: usize = 256;

/// What a component declares. A missing option leaves the earlier value.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FactsArguments {
    /// Name of the provisioner, which statuses show
    #[arg(long, value_name = "NAME", value_parser = text)]
    pub name: Option<String>,

    /// Version of the provisioner
    // `version` would be the option that prints the version of the program.
    #[arg(long = "version", id = "plugin-version", value_name = "VERSION", value_parser = text)]
    pub plugin_version: Option<String>,

    /// Bundle format that the provisioner detects, such as `sail+v0`. BundleDeployments whose content has it need not name the class.
    /// Repeatable
    #[arg(long = "format", value_name = "FORMAT", value_parser = text)]
    pub formats: Vec<String>,

    /// Function of the contract that the provisioner can do without, such as `request#supports`. Hosts without it load the component
    /// nevertheless. Repeatable
    #[arg(long = "optional", value_name = "INTERFACE#FUNCTION", value_parser = text)]
    pub optional: Vec<String>,
}

impl FactsArguments {
    /// Whether nothing is given.
    pub fn is_empty(&self) -> bool {
        self.name.is_none() && self.plugin_version.is_none() && self.formats.is_empty() && self.optional.is_empty()
    }

    /// The component with these facts. `name` names it in errors.
    ///
    /// # Errors
    /// It is not a component of the contract, or its SDK wrote its facts.
    pub fn annotated(&self, wasm: &[u8], name: &str) -> Result<Vec<u8>, CommandError> {
        let Inspection { facts, .. } = component::inspected(wasm, name)?;
        let kept = |given: &Option<String>, before: String| given.clone().unwrap_or(before);
        let facts = Facts {
            contract: facts.contract,
            name: kept(&self.name, facts.name),
            version: kept(&self.plugin_version, facts.version),
            formats: if self.formats.is_empty() { facts.formats } else { self.formats.clone() },
            optional: if self.optional.is_empty() { facts.optional } else { self.optional.clone() },
        };
        chandler_componentize::annotated(wasm, &facts)
            .map_err(|error| CommandError::failed(format!("failed to annotate {name}")).because(&error))
    }
}

/// Writes a component to a file, once it is certain that this version can read it, and prints what it says. `name` names it in errors.
pub(super) fn write(to: &Path, wasm: &[u8], name: &str, terminal: &Terminal) -> Result<(), CommandError> {
    let inspection = component::inspected(wasm, name)?;
    component_file::write(to, wasm)?;
    terminal.line(format!("wrote {}", one_line(&to.display().to_string())));
    output::print(&Described::new(wasm, inspection).text())
}

fn text(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > LONGEST || text.contains(chandler_core::text::is_deceptive) {
        return Err(format!("write 1 to {LONGEST} printable bytes"));
    }
    Ok(text.to_owned())
}
