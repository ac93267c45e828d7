//! Makes provisioner components of core modules, and writes what a component declares about itself.
//!
//! | item | purpose |
//! |---|---|
//! | [`component`] | a component of the core module that a compiler made |
//! | [`Facts`], [`annotated`] | name, version, contract and formats, which hosts read before they compile anything |

mod component;
mod facts;

pub use component::{ComponentError, component};
pub use facts::{AnnotateError, Facts, SECTION, annotated};
