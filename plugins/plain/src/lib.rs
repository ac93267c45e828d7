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
//! - An OpenShift `image-references` file is not installed. It names the images of the bundle, and the configuration may
//!   replace them.
//! - Run levels in file names become stages: [`stage`].
//!
//! | module | holds |
//! |---|---|
//! | `detect` | whether content is such a bundle |
//! | `load` | from files to objects |
//! | `check` | what each object must have, and that no two have one name |
//! | `config` | the configuration and its schema |
//! | `images` | replacing images |
//! | [`stage`] | run levels |

mod check;
mod config;
mod detect;
mod images;
mod load;
pub mod stage;

use chandler_sdk::{Content, Diagnostic, Facts, Failure, Location, Output, Provisioner, Request, Severity};

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

    fn config_schema(content: &dyn Content) -> Option<String> {
        Some(config::schema(content).to_string())
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let images = config::parse(&request.config);
        let references = images::references(content);
        let load::Loaded { objects, mut errors, mut warnings } = load::load(content);
        let objects = check::check(objects, &mut errors, &mut warnings);
        if objects.is_empty() && errors.is_empty() {
            let message =
                "invalid bundle: found zero objects: plain+v0 bundles are required to contain at least one object";
            let finding = Diagnostic::error("NoObjects", message).at(MANIFESTS);
            errors.push(finding.help("put at least one file with a Kubernetes object directly into manifests/"));
        }
        // What is wrong with the names of images matters only where images are replaced.
        let replaces = images.as_ref().is_ok_and(|images| !images.is_empty());
        let as_warning = |finding: &Diagnostic| Diagnostic { severity: Severity::Warning, ..finding.clone() };
        if replaces {
            errors.extend(references.findings.iter().cloned());
        } else {
            warnings.extend(references.findings.iter().map(as_warning));
        }
        if !errors.is_empty() {
            errors.extend(images.err().iter().flat_map(Failure::diagnostics).cloned());
            return Err(Failure::InvalidContent(errors));
        }
        let images = images?;
        warnings.extend(references.advice(&images));
        emit(&objects, &references.replacements(&images), warnings, output)
    }
}

/// Reports what was found, then emits the objects.
fn emit(
    objects: &[load::Manifest],
    replacements: &images::Replacements,
    mut warnings: Vec<Diagnostic>,
    output: &mut dyn Output,
) -> Result<(), Failure> {
    let mut replaced = Vec::new();
    if !replacements.is_empty() {
        for load::Manifest { node, path, .. } in objects {
            let mut value = node.to_json();
            for pointer in replacements.apply(&mut value) {
                let message = "the text names an image that is to be replaced, in a way in which it cannot be";
                let finding = Diagnostic::warning("ImageNotReplaced", message).at(path).within(node, &pointer);
                warnings.push(finding.help("end the reference with white space, a quote or the end of the text"));
            }
            replaced.push(value);
        }
    }
    for warning in &warnings {
        output.report(warning);
    }
    let mut replaced = replaced.into_iter();
    for object in objects {
        match replaced.next() {
            Some(value) => output.emit_value(&value, object.stage, Some(Location::of(&object.path, &object.node)))?,
            None => output.emit_node(&object.node, object.stage, &object.path)?,
        }
    }
    Ok(())
}

chandler_sdk::export!(Plain);
