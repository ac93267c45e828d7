//! The commands, one per file.

pub mod controller;
pub mod crds;
pub mod dev;
pub mod lint;
pub mod render;
pub mod status;
