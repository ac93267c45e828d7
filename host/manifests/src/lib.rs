//! Everything that a cluster needs to run the controller, as `chandler manifests` prints it: [`Settings`] in, [`objects`] out. No cluster.
//!
//! | item | purpose |
//! |---|---|
//! | [`Profile`] | what a cluster is for: decides the defaults |
//! | [`Settings`], [`SETTINGS`] | what users choose: `KEY=VALUE`, checked |
//! | [`objects`] | the objects, in an order that can be applied |
//! | [`installation`] | the objects that any settings print, to remove them |
//! | `files` | the files of `deploy/`, which are the only source of the objects |
//! | `values` | the syntax of values |
//! | `deployment`, `adapt`, `condition` | what settings change in the files, and which they select |
//! | [`plain()`], [`registry()`] | bundles of Chandler, for another Chandler and for OLM |
//! | [`chart()`] | a Helm chart of the same files, whose values are the settings |
//!
//! `deploy/` is what the default settings print; tests compare the two, and `deploy/kustomization.yaml`.

mod about;
mod adapt;
mod bundle;
mod chart;
mod condition;
mod deployment;
mod files;
mod form;
mod installation;
mod profile;
mod render;
mod settings;
mod table;
mod values;
mod yaml;

pub use bundle::{Bundle, plain, registry};
pub use chart::{chart, values};
pub use installation::{TENANT_NAMESPACE, installation};
pub use profile::Profile;
pub use render::{ManifestsError, objects};
pub use settings::{LogFormat, Permissions, Resources, SettingError, Settings};
pub use table::{SETTINGS, Setting};

/// The version of this build, which is the tag of the default image.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The namespace of the controller in the files of `deploy/`.
pub const NAMESPACE: &str = "chandler-system";
/// The registry and repository of the default image. There is none at this place: users name their own.
pub const PLACEHOLDER: &str = "registry.example.com/chandler";
