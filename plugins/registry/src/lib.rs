//! The registry+v1 provisioner: installs OLM bundles in a cluster without OLM.
//!
//! A registry+v1 bundle is a package name in `metadata/annotations.yaml`, one ClusterServiceVersion that describes how
//! an operator is installed, its CustomResourceDefinitions, and a few more objects. The generated objects are those of
//! the renderer of OLM v1 (`operator-controller/internal/operator-controller/rukpak/render`), field by field;
//! `docs/registry-v1.md` lists the differences.
//!
//! | module | holds |
//! |---|---|
//! | `detect` | whether content is such a bundle |
//! | `load` | from files to a `bundle::Bundle` |
//! | `typed` | the typed round trip of the reference: types as tables |
//! | `csv` | what is read of a ClusterServiceVersion |
//! | `config` | the configuration and its schema |
//! | `modes` | install modes and target namespaces |
//! | `validate` | what a bundle must fulfil |
//! | `requirements` | what it needs of its target, and what it says of itself |
//! | `describe` | the same as the properties of catalogs, for status and resolver |
//! | `generate` | the objects, one file per generator |
//! | `unique` | each object once |
//! | `advice` | what an administrator should know |
//! | `provision` | the order of these steps |
//! | `compatibility` | which faults and limits of the reference are kept |
//! | `names`, `kinds`, `json` | names of objects, supported kinds, changing JSON values |

mod advice;
mod bundle;
mod compatibility;
mod config;
mod csv;
mod describe;
mod detect;
mod generate;
mod json;
mod kinds;
mod load;
mod modes;
mod names;
mod provision;
mod requirements;
mod typed;
mod unique;
mod validate;

use chandler_sdk::{Content, Facts, Failure, Output, Provisioner, Request};

/// The provisioner.
pub struct Registry;

chandler_sdk::export!(Registry);

impl Provisioner for Registry {
    const FACTS: Facts = Facts::new("registry", env!("CARGO_PKG_VERSION")).formats(&[detect::FORMAT]);

    fn detect(content: &dyn Content) -> Option<String> {
        detect::detect(content)
    }

    fn config_schema(content: &dyn Content) -> Result<Option<String>, Failure> {
        // Without a valid bundle there is no schema; `provision` reports the errors.
        Ok(load::load_ahead(content, |loaded| {
            let modes = modes::InstallModes::of(&loaded.bundle.as_ref()?.csv.spec.install_modes);
            config::schema::schema(&modes).ok()
        }))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        provision::provision(request, content, output)
    }
}
