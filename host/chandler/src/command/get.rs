//! `chandler get`.

use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    CommandError,
    arguments::{connection::Connection, format::DataFormat, target::DEPLOYMENTS},
    read::{cluster, objects, values},
    view::{
        listing::Row,
        manifest,
        output::{self, Format},
        terminal::Terminal,
        text::one_line,
    },
};

/// Print the values, notes and objects of a BundleDeployment
///
/// Prints the configuration in the spec (values), warnings about the bundle (notes), and the current objects in the cluster as manifests:
/// without status, and without fields that the API server sets. Values of Secrets are hidden; values from spec.valuesFrom can be hidden
/// only if you may read these Secrets.
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    after_long_help = "\
Output:
  The parts on standard output: values and manifest as YAML; with -o json as
  JSON, and with -o yaml all parts as one YAML document. Kinds that could not
  be read on standard error.

Exit codes: 0 success; 1 failed, or a kind could not be read; 2 wrong usage; 7 not found

Examples:
  chandler get harbour
  The configuration, as a file for `chandler upgrade -f`:
    chandler get values harbour > values.yaml
  The objects:
    chandler get manifest harbour"
)]
pub struct Get {
    /// What is printed
    #[arg(value_enum, value_name = "PART", default_value_t = Part::All)]
    pub part: Part,

    /// Name of the BundleDeployment
    #[arg(value_name = "NAME", required = true, value_parser = DEPLOYMENTS.name())]
    pub name: String,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// What is printed of a BundleDeployment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// All parts, and the version and state
    All,
    /// The configuration in the spec
    Values,
    /// Warnings about the bundle and its release
    Notes,
    /// The current objects in the cluster
    Manifest,
}

impl Get {
    /// Prints the parts.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let deployment = cluster::deployment(&client, &self.name).await?;
        let values = || Value::Object(manifest::values(&deployment));
        let format = if self.output == DataFormat::Json { Format::Json } else { Format::Yaml };
        let is_text = self.output == DataFormat::Text;
        match self.part {
            Part::Values if format == Format::Json => return output::print(&output::json(&values())?),
            Part::Values => return output::print(&output::yaml(&[values()])?),
            Part::Notes if !is_text => {
                return output::print(&output::data(&manifest::notes(&deployment), self.output, String::new)?);
            }
            Part::Notes => {
                let mut lines = manifest::notes(&deployment);
                // Each line ends with a line feed; without notes there is no output.
                lines.extend((!lines.is_empty()).then(String::new));
                return output::print(&lines.join("\n"));
            }
            Part::All | Part::Manifest => {}
        }
        let live = objects::live(&client, &deployment).await;
        let mut objects: Vec<Value> = live.objects.into_iter().map(manifest::manifest).collect();
        let redactor = values::redactor(&client, &deployment).await;
        for object in &mut objects {
            redactor.hide_in(object);
        }
        let row = Row::new(&deployment, Timestamp::now());
        let text = match self.part {
            Part::Manifest => output::write(&objects, format)?,
            _ if is_text => manifest::all(&deployment, &row, &objects)?,
            _ => {
                let parts = json!({
                    "release": row, "values": values(), "notes": manifest::notes(&deployment), "manifest": objects,
                });
                output::data(&parts, self.output, String::new)?
            }
        };
        output::print(&text)?;
        for problem in &live.unreadable {
            terminal.line(format!("failed to read {}", one_line(problem)));
        }
        if live.unreadable.is_empty() { Ok(()) } else { Err(CommandError::failed("some kinds could not be read")) }
    }
}
