//! The kinds of sources, a file each.

pub mod config_maps;
pub mod git;
pub mod helm_repository;
pub mod http;
pub mod image;
pub mod upload;
