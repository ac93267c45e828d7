//! `cargo xtask demo`.

use std::path::PathBuf;

use crate::{command, guests};

/// Install a bundle on the embedded control plane.
#[derive(clap::Args)]
pub(crate) struct Demo {
    /// A registry+v1 or plain+v0 bundle directory (default: the sample operator), then arguments of `chandler dev`, for
    /// example --keep; `--` may precede either
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Demo {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let (bundle, arguments) = split(self.arguments);
        let bundle = match bundle {
            Some(bundle) => std::path::absolute(bundle)?,
            None => command::root().join("tests/fixtures/registry/harbour-operator.v0.1.0"),
        };
        guests::build_built_in()?;
        command::run(command::program("chandler")?.args(["dev", "--bundle"]).arg(bundle).args(arguments))
    }
}

/// The bundle, if the first argument is one, and the arguments of `chandler dev`.
fn split(arguments: Vec<String>) -> (Option<PathBuf>, Vec<String>) {
    let mut arguments = arguments.into_iter().filter(|argument| argument != "--").peekable();
    let bundle = arguments.next_if(|argument| !argument.starts_with('-')).map(PathBuf::from);
    (bundle, arguments.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundle_may_follow_a_double_dash() {
        for (given, bundle, rest) in [
            ("", None, ""),
            ("b", Some("b"), ""),
            ("-- b", Some("b"), ""),
            ("-- b -- --keep", Some("b"), "--keep"),
            ("b --timeout 1m", Some("b"), "--timeout 1m"),
            ("-- --keep", None, "--keep"),
        ] {
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(split(words(given)), (bundle.map(PathBuf::from), words(rest)), "{given}");
        }
    }
}
