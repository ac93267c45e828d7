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
//! | `deployment`, `adapt` | what settings change in the files |
//!
//! `deploy/` is what the default settings print; tests compare the two, and `deploy/kustomization.yaml`.

mod adapt;
mod deployment;
mod files;
mod installation;
mod profile;
mod render;
mod settings;
mod table;
mod values;

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
