//! The configuration of a bundle (`spec.config`): files, and single values.

use std::path::PathBuf;

use crate::read::configuration::ConfigurationOptions;

/// The files and values that a configuration is merged from.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ConfigurationArguments {
    /// File with the bundle's configuration (spec.config), in YAML or JSON; `-` reads standard input. Repeatable: objects are merged
    /// member by member, and the last file wins
    #[arg(short = 'f', long = "config", visible_alias = "values", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Set a value of the configuration, as in Helm: `a.b=1`, `list[0].name=x`, `list={a,b}`, several separated by commas; `null` removes
    /// the member. Repeatable; wins over --config. Do not put passwords here: spec.config is not secret
    #[arg(long = "set", value_name = "PATH=VALUE")]
    pub assignments: Vec<String>,

    /// Like --set, but the value is a string, such as `tag=1.10` or `enabled=true`
    #[arg(long = "set-string", value_name = "PATH=VALUE")]
    pub strings: Vec<String>,
}

impl ConfigurationArguments {
    /// The options.
    pub fn options(&self) -> ConfigurationOptions {
        ConfigurationOptions {
            files: self.files.clone(),
            assignments: self.assignments.clone(),
            strings: self.strings.clone(),
        }
    }
}
