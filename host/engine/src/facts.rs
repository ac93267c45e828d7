//! The static facts of a component, read from its custom section before anything is compiled.

use serde::{Deserialize, Serialize};

/// What a component says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The version of the contract that it is built against.
    pub contract: String,
    /// Its name; empty where it says none.
    #[serde(default)]
    pub name: String,
    /// Its version; empty where it says none.
    #[serde(default)]
    pub version: String,
    /// The formats that it can detect.
    #[serde(default)]
    pub formats: Vec<String>,
    /// The capabilities of the host that it wants.
    #[serde(default)]
    pub capabilities: Vec<String>,
}
