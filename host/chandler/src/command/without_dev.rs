//! `chandler dev` in a build without the feature `dev`: names the build that has it.

use std::process::ExitCode;

use crate::{CommandError, view::terminal::Terminal};

/// Try a bundle on a control plane in this process (not part of this build)
#[derive(Debug, clap::Args)]
pub struct Dev {
    /// Ignored
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub arguments: Vec<String>,
}

impl Dev {
    /// Fails with the command that installs the full build.
    #[expect(clippy::unused_async, reason = "the build with the feature `dev` awaits")]
    pub async fn run(&self, _: &Terminal) -> Result<ExitCode, CommandError> {
        Err(CommandError::usage("this build of chandler has no embedded control plane").hint(
            "install one with the feature `dev`: `cargo xtask plugins && cargo install --locked --path host/chandler`",
        ))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::{
        Arguments,
        command::Command,
        view::{
            error::FailureKind,
            terminal::{Look, Terminal},
        },
    };

    #[tokio::test]
    async fn dev_names_the_build_that_has_it_whatever_its_arguments() {
        let arguments = Arguments::try_parse_from(["chandler", "dev", "--bundle", "x", "--keep"]).unwrap();
        let Command::Dev(dev) = arguments.command else { panic!("another command") };
        let error = dev.run(&Terminal::new(Look::Plain, 80)).await.unwrap_err();
        assert_eq!(error.kind(), FailureKind::Usage);
        assert!(error.to_string().contains("feature `dev`"), "{error}");
    }
}
