//! The steps of a reconcile that have effects, in their order. Each takes the handles that it uses and the output of the step
//! before it, and has an output and an error type of its own. The decisions between them are in [`chandler_decisions`].
//!
//! | step | takes | returns |
//! |---|---|---|
//! | [`class`] | the name of a class | `ResolvedClass` |
//! | [`detect`] | content, where the spec names no class | `ResolvedClass` |
//! | [`unpack`] | a source | `UnpackedContent` |
//! | [`values`] | the references of the spec | `Values` |
//! | [`render`] | a class, content and a `Config` with the values | `Rendered` |
//! | [`prepare`] | the spec; class, unpack, detect and render in the background | `Prepared` |
//! | [`choose`] | the spec, `Prepared` or the history | `Chosen` |
//! | [`approve`] | `Chosen` | `Approved` |
//! | [`certificates`] | a release | `Completed` |
//! | [`apply`] | `Completed` | `Applied` |
//! | [`observe`] | `Completed` | `Observation` |
//! | [`rollout`] | `Approved`, or `Restored` for the release that runs | `RolledOut` |
//! | [`report`] | an `Assessment` of all of these | the status, and when the next reconcile is |
//!
//! Beside the line: [`concealed`] leaves out what a provisioner writes about values of Secrets, [`restore`] and [`rerender`] return the release of an earlier revision, [`running`] looks after the one that
//! runs, [`restored`] waits for the rest of a backup, [`target`] finds the other cluster that a BundleDeployment names, [`finalize`] deletes, [`failure`] reports what ends a reconcile early.

pub(super) mod account;
pub(super) mod apply;
pub(super) mod approve;
pub(super) mod certificates;
pub(super) mod choose;
pub(super) mod class;
mod concealed;
pub(super) mod detect;
pub(super) mod failure;
pub(super) mod finalize;
pub(super) mod observe;
pub(super) mod prepare;
pub(super) mod render;
pub(super) mod report;
pub(super) mod rerender;
pub(super) mod restore;
pub(super) mod restored;
pub(super) mod rollout;
pub(super) mod running;
pub(super) mod target;
pub(super) mod unpack;
pub(super) mod values;
