//! The decisions of a reconcile of a BundleDeployment.
//!
//! This crate has no client, no clock, no file and no lock; what a decision needs comes in as data, and what it decides goes out as
//! data. The compiler holds this: of the crates that make requests it depends on the types alone (`clippy.toml` refuses the others),
//! and it cannot name a client of the API server.
//!
//! | module | decides |
//! |---|---|
//! | [`intent`] | what a reconcile does, and when the next one is |
//! | [`account`] | on behalf of which ServiceAccount objects are handled |
//! | [`detection`] | which class renders a bundle, where the spec names none |
//! | [`config`] | the configuration of the provisioner |
//! | [`revisions`] | which revision should run, and what the history records |
//! | [`restored`] | how long a BundleDeployment that was restored from a backup waits for its objects |
//! | [`redaction`] | which texts of a status may hold values of Secrets |
//! | [`approval`] | whether a change needs approval |
//! | [`privileges`] | what an update of a provisioner may not add unseen |
//! | [`staged`] | which BundleDeployments may have a newer component now, where an update is staged |
//! | [`class_uses`] | how many BundleDeployments use a class, for its status |
//! | [`quarantine`] | when the component of a class is not called for a while, since it works for no bundle |
//! | [`class_calls`] | figures about the calls of a component, for the status of its class |
//! | [`updates`] | whether an installed release keeps its component while its class has a newer one |
//! | [`owner`] | how the objects of the release are treated |
//! | [`drift`] | which differences are repaired, and how they are reported |
//! | [`gates`] | what a rollout waits for, and when health is reported |
//! | [`bundle`], [`upgrade_warnings`] | what is reported about a bundle and its rollout |
//! | [`contention`] | which objects another field manager changes again after each repair |
//! | [`status`] | the status |
//!
//! They take and return [`assessment`], what a reconcile found, and [`problem`], why it ended early.

pub mod account;
pub mod approval;
pub mod assessment;
pub mod bundle;
pub mod class_calls;
pub mod class_uses;
pub mod config;
pub mod contention;
pub mod detection;
pub mod drift;
pub mod gates;
pub mod intent;
pub mod owner;
pub mod privileges;
pub mod problem;
pub mod quarantine;
pub mod redaction;
pub mod restored;
pub mod revisions;
pub mod spec_error;
pub mod staged;
pub mod status;
pub mod updates;
pub mod upgrade_warnings;
