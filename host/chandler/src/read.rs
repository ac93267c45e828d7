//! Reads the cluster, a bundle, a configuration or a kubeconfig. Nothing here changes the cluster.

pub mod below;
pub mod cache;
pub mod catalogs;
pub mod cluster;
pub mod configuration;
pub mod delivery;
pub mod deployed;
pub mod dev_controller;
#[cfg(feature = "dev")]
pub mod expected_kinds;
pub mod file;
pub mod follow;
pub mod kubeconfig;
pub mod missing_kinds;
pub mod names;
pub mod objects;
pub mod packaging;
pub mod preview;
pub mod provisioner;
pub mod question;
pub mod rendering;
pub mod settled;
pub mod source;
pub mod unrecognised;
pub mod values;
