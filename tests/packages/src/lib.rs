//! Installs and upgrades published operators on the embedded control plane as a user would: with the `chandler` command, following the
//! advice that it prints, once.
//!
//! | module | what it does |
//! |---|---|
//! | [`packages`] | finds packages and their versions |
//! | [`version`] | the order of versions |
//! | [`plane`] | a control plane, and the command for it |
//! | [`advice`] | the advice in printed text |
//! | [`newest`] | installs and uninstalls one version |
//! | [`upgrades`] | upgrades through many versions |
//! | [`entry`] | one line of a list: what became of one version |
//! | [`list`] | a list of entries as JSON lines, and the differences of two |

pub mod advice;
mod attempt;
pub mod entry;
pub mod list;
pub mod newest;
pub mod packages;
pub mod plane;
pub mod upgrades;
pub mod version;
