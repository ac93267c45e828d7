//! The registry+v1 provisioner: installs OLM bundles in a cluster without OLM.
//!
//! A registry+v1 bundle is a package name in `metadata/annotations.yaml`, one ClusterServiceVersion that describes how
//! an operator is installed, its CustomResourceDefinitions, and a few more objects. The generated objects equal the output of OLM v1's
//! renderer (`operator-controller/internal/operator-controller/rukpak/render`), field by field; `docs/registry-v1.md` lists the
//! differences.
//!
//! | module | holds |
//! |---|---|
//! | `detect` | format detection |
//! | `load` | parsing files into a `bundle::Bundle` |
//! | `typed` | normalization through tables of Go types |
//! | `csv` | the used fields of a ClusterServiceVersion |
//! | `config` | the configuration and its schema |
//! | `modes` | install modes and target namespaces |
//! | `validate` | validation of a bundle |
//! | `requirements` | its requirements on the cluster |
//! | `describe` | bundle metadata as in catalogs, for status and resolvers |
//! | `generate` | the objects, one file per generator |
//! | `unique` | removal of duplicate objects |
//! | `advice` | warnings about the release |
//! | `provision` | the order of these steps |
//! | `compatibility` | which errors and limitations of OLM v1 are kept |
//! | `version_range` | the syntax of version ranges of catalogs |
//! | `names`, `kinds`, `json` | names of objects, supported kinds, JSON helpers |

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
mod version_range;

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
        Ok(load::prefetch(content, |loaded| {
            let modes = modes::InstallModes::of(&loaded.bundle.as_ref()?.csv.spec.install_modes);
            config::schema::schema(&modes).ok()
        }))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        provision::provision(request, content, output)
    }
}
