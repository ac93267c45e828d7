//! Arguments that several commands share, and how their values are parsed.

pub mod bundle;
#[cfg(feature = "dev")]
pub mod cluster;
#[cfg(feature = "dev")]
pub mod faults;
pub mod format;
pub mod naming;
pub mod registry;
pub mod values;
