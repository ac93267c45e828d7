//! What can be said on the command line.

use clap::{Parser, Subcommand};

use crate::command;

/// Installs software bundles on Kubernetes, with provisioners that run in a sandbox.
#[derive(Debug, Parser)]
#[command(
    name = "chandler",
    version,
    arg_required_else_help = true,
    after_long_help = "\
Data goes to standard output and can be piped; everything else goes to standard error.

Exit codes:
  0    done (for `dev` and `status`: healthy)
  1    refused by the bundle, the configuration, a registry or the cluster; or not healthy
  2    the command was called in a way that cannot work
  3    what was waited for did not happen in time
  4    something would change (`diff`)
  130  interrupted

Examples:
  Install a bundle on a control plane that lives in this process, and watch it:
    chandler dev --bundle ./my-operator
  See what it would apply, without a cluster:
    chandler render ./my-operator
  On a cluster:
    chandler crds | kubectl apply -f -
    chandler status my-operator"
)]
pub struct Arguments {
    /// What to log to standard error: a level (error, warn, info, debug, trace) or directives such as
    /// `warn,chandler_controller=debug`
    #[arg(
        long,
        global = true,
        value_name = "LEVEL",
        env = "RUST_LOG",
        hide_env_values = true,
        help_heading = "Logging"
    )]
    pub log_level: Option<String>,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a comment here would replace the help text that stands at the type of the arguments")]
pub enum Command {
    #[cfg_attr(not(feature = "dev"), command(hide = true))]
    Dev(command::dev::Dev),
    Render(command::render::Render),
    Lint(command::lint::Lint),
    Rbac(command::rbac::Rbac),
    Status(command::status::Status),
    Tree(command::tree::Tree),
    Diff(command::diff::Diff),
    Approve(command::approve::Approve),
    Adopt(command::adopt::Adopt),
    History(command::history::History),
    Rollback(command::rollback::Rollback),
    Delete(command::delete::Delete),
    Controller(command::controller::Controller),
    Crds(command::crds::Crds),
    /// Print the reference of the command line as Markdown
    #[command(hide = true)]
    Reference,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_crd_is_sound() {
        Arguments::command().debug_assert();
    }
}
