//! The helm provisioner: renders Helm charts as Helm 3 does.
//!
//! | module | holds |
//! |---|---|
//! | [`chart`] | charts: their files, subcharts, dependencies and values |
//! | [`yaml`], `json` | reading and writing values as Helm does |
//! | [`functions`] | the functions of templates: Sprig's and Helm's |
//! | [`schema`] | checking values against a schema |
//! | [`render`] | the engine |
//! | [`pipeline`] | from files and values to manifests |
//! | [`placeholders`] | passwords and certificates that the host generates |
//! | `configuration` | the configuration of a BundleDeployment |
//! | `provisioner` | the export: what a BundleDeployment renders to |
//! | `test_hooks` | the tests of a chart, on demand |
//! | [`manifest`] | documents and hooks in the order of their installation |

pub mod chart;
mod configuration;
pub mod functions;
mod json;
pub mod manifest;
mod number;
pub mod pipeline;
pub mod placeholders;
mod provisioner;
pub mod render;
pub mod schema;
mod test_hooks;
pub mod yaml;

use std::fmt::{Arguments, Write as _};

pub use provisioner::{FORMAT, Helm};

use chandler_go_template::IntKind;

/// An integer as text: one of a type without a sign may be kept as its two's complement.
fn integer(value: i64, kind: IntKind) -> String {
    if kind.is_signed() { value.to_string() } else { value.cast_unsigned().to_string() }
}

/// Appends a formatted text; that cannot fail.
fn append(out: &mut String, text: Arguments<'_>) {
    let _ = out.write_fmt(text);
}

chandler_sdk::export!(Helm);
