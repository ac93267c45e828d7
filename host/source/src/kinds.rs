//! The kinds of sources, one file each.

pub mod config_maps;
pub mod image;
