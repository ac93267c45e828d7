//! The plain+v0 provisioner: a directory of Kubernetes manifests, installed as they are.
//!
//! The rules are those of the predecessor (`rukpak/pkg/provisioner/plain`) and its `docs/bundles/plain.md`: all objects
//! stand in files directly in `manifests/`, whatever their names; at least one object; no templating. Objects without a
//! namespace stay so, since only the host knows which kinds have one.
//!
//! Decided otherwise, or more:
//! - All findings are reported at once, with positions; the predecessor stops at the first.
//! - Files whose names begin with a dot are left out, with a warning.
//! - Two equal objects with one name count once, with a warning; two different ones are refused, since one would silently
//!   win.
//! - An OpenShift `image-references` file is not installed: it is for the tools that build release images.
//! - Run levels in file names become stages: [`stage`].
//!
//! | module | holds |
//! |---|---|
//! | `detect` | whether content is such a bundle |
//! | `load` | from files to objects |
//! | `check` | what each object must have, and that no two have one name |
//! | [`stage`] | run levels |

mod check;
mod detect;
mod load;
pub mod stage;

use chandler_sdk::{Content, Diagnostic, Facts, Failure, Output, Provisioner, Request};

/// What this provisioner calls its format.
pub const FORMAT: &str = "plain+v0";

/// The directory of the manifests.
const MANIFESTS: &str = "manifests/";

/// The provisioner.
#[derive(Debug)]
pub struct Plain;

impl Provisioner for Plain {
    const FACTS: Facts = Facts::new("plain", env!("CARGO_PKG_VERSION")).formats(&[FORMAT]);

    fn detect(content: &dyn Content) -> Option<String> {
        detect::is_plain(content).then(|| FORMAT.to_owned())
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let load::Loaded { objects, mut errors, mut warnings } = load::load(content);
        let objects = check::check(objects, &mut errors, &mut warnings);
        if objects.is_empty() && errors.is_empty() {
            let message =
                "invalid bundle: found zero objects: plain+v0 bundles are required to contain at least one object";
            let finding = Diagnostic::error("NoObjects", message).at(MANIFESTS);
            errors.push(finding.help("put at least one file with a Kubernetes object directly into manifests/"));
        }
        if !errors.is_empty() {
            return Err(Failure::InvalidContent(errors));
        }
        if !request.config.is_empty() {
            let message = "plain+v0 bundles take no configuration, and this one is ignored";
            warnings.push(Diagnostic::warning("ConfigurationIgnored", message).at("config"));
        }
        for warning in &warnings {
            output.report(warning);
        }
        for object in &objects {
            output.emit_node(&object.node, object.stage, &object.path)?;
        }
        Ok(())
    }
}

chandler_sdk::export!(Plain);
