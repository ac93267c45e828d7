//! The kinds of sources, a file each.

pub mod config_maps;
pub mod git;
pub mod http;
pub mod image;
pub mod upload;
