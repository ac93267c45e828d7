//! The plain+v0 provisioner: a directory of manifests, installed as it is.
//!
//! Rules (the archived RukPak project's `docs/bundles/plain.md` and `pkg/provisioner/plain/plain.go`):
//! - the manifests lie in `manifests/`, without subdirectories, under any file name;
//! - there is at least one object, of any kind; objects without a namespace go to the install namespace;
//! - nothing is a template: what looks like one is text.
//!
//! On top of that, run levels as the cluster-version operator knows them: see [`run_level`].

mod manifests;
pub mod run_level;

use chandler_sdk::{Content, Facts, Failure, Output, Provisioner, Request};

/// The format that this provisioner reads.
pub const FORMAT: &str = "plain+v0";

/// The provisioner.
pub struct Plain;

impl Provisioner for Plain {
    const FACTS: Facts = Facts::new("plain", env!("CARGO_PKG_VERSION")).formats(&[FORMAT]);

    /// A bundle with `manifests/` and nothing that says that it is something else.
    fn detect(content: &dyn Content) -> Option<String> {
        let plain = content.exists("manifests") && !content.exists("metadata/annotations.yaml");
        plain.then(|| FORMAT.to_owned())
    }

    fn provision(_: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let manifests = manifests::load(content).map_err(Failure::InvalidContent)?;
        let staged = run_level::Stages::of(manifests.iter().map(|manifest| manifest.file_name.as_str()));
        for manifest in &manifests {
            output.emit_node(&manifest.object, staged.stage(&manifest.file_name), &manifest.path)?;
        }
        Ok(())
    }
}

chandler_sdk::export!(Plain);
