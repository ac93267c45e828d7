//! Arguments that several commands share, and how their values are parsed.

pub mod assignment;
pub mod bundle;
#[cfg(feature = "dev")]
pub mod cluster;
pub mod configuration;
pub mod connection;
#[cfg(feature = "dev")]
pub mod faults;
pub mod format;
pub mod installation;
#[cfg(feature = "dev")]
pub mod kind_set;
pub mod naming;
pub mod registry;
pub mod values;
pub mod wait;
