//! Arguments that several commands share, and how their values are parsed.

pub mod before_command;
pub mod bundle;
pub mod catalogs;
#[cfg(feature = "dev")]
pub mod cluster;
pub mod configuration;
pub mod connection;
pub mod content_service;
pub mod controller_namespace;
pub mod dry_run;
#[cfg(feature = "dev")]
pub mod faults;
pub mod format;
pub mod installation;
#[cfg(feature = "dev")]
pub mod kind_set;
pub mod monitoring;
pub mod receiver;
pub mod registry;
pub mod system_namespace;
pub mod target;
pub mod tls;
pub mod traces;
pub mod values;
pub mod wait;
