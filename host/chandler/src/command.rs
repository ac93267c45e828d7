//! The commands, one per file.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{
    CommandError,
    arguments::before_command::BeforeCommand,
    view::{failure::exit_codes, output, terminal::Terminal},
};

pub mod adopt;
pub mod approve;
pub mod catalog;
pub mod completion;
pub mod content;
pub mod controller;
pub mod crds;
pub mod delete;
#[cfg(feature = "dev")]
pub mod dev;
#[cfg(not(feature = "dev"))]
#[path = "command/without_dev.rs"]
pub mod dev;
pub mod diff;
pub mod doctor;
pub mod events;
pub mod explain;
pub mod get;
pub mod history;
pub mod install;
pub mod line;
pub mod lint;
pub mod list;
pub mod man;
pub mod manifests;
pub mod migrate;
pub mod must_gather;
#[cfg(test)]
mod other_tools_tests;
pub mod outdated;
pub mod plugin;
pub mod preflight;
pub mod provisioners;
pub mod push;
pub mod rbac;
pub mod reconcile;
pub mod reference;
pub mod render;
pub mod resolve;
pub mod resume;
pub mod rollback;
pub mod status;
pub mod suspend;
pub mod test;
pub mod tree;
pub mod uninstall;
pub mod upgrade;

/// Install software bundles on Kubernetes with sandboxed provisioners
#[derive(Debug, Parser)]
#[command(name = "chandler", version, arg_required_else_help = true, after_long_help = after_help())]
pub struct Arguments {
    /// Level of log messages on standard error: error, warn, info, debug or trace, or directives such as
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

    /// No colours, as with the environment variable NO_COLOR
    #[arg(long, global = true, help_heading = "Terminal")]
    pub no_color: bool,

    /// Options of the command, written before it.
    #[command(flatten)]
    pub before: BeforeCommand,

    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The end of the help: the exit codes, and examples.
fn after_help() -> String {
    let dev = if cfg!(feature = "dev") {
        "  Install a bundle on a control plane in this process, and follow it:\n    chandler dev --bundle ./my-operator\n"
    } else {
        ""
    };
    format!(
        "\
Data goes to standard output; everything else goes to standard error.

Exit codes:
{}

Examples:
{dev}  Print the objects of a bundle, without a cluster:
    chandler render ./my-operator
  On a cluster:
    chandler manifests --set image=IMAGE | kubectl apply --server-side -f -
    chandler install my-operator ./my-operator --create-namespace
    chandler status my-operator",
        exit_codes()
    )
}

/// The commands.
#[derive(Debug, Subcommand)]
#[expect(missing_docs, reason = "a doc comment would replace the help text of the arguments type")]
pub enum Command {
    #[cfg_attr(not(feature = "dev"), command(hide = true))]
    Dev(dev::Dev),
    Install(Box<install::Install>),
    Upgrade(Box<upgrade::Upgrade>),
    List(list::List),
    Outdated(Box<outdated::Outdated>),
    Get(get::Get),
    Content(Box<content::Content>),
    Render(render::Render),
    Lint(lint::Lint),
    Push(Box<push::Push>),
    Plugin(plugin::Plugin),
    Catalog(Box<catalog::Catalog>),
    Resolve(Box<resolve::Resolve>),
    Rbac(rbac::Rbac),
    Status(status::Status),
    Explain(explain::Explain),
    Events(events::Events),
    Test(Box<test::Test>),
    Tree(tree::Tree),
    Diff(diff::Diff),
    Approve(approve::Approve),
    Adopt(adopt::Adopt),
    Migrate(Box<migrate::Migrate>),
    History(history::History),
    Rollback(rollback::Rollback),
    Delete(delete::Delete),
    Suspend(suspend::Suspend),
    Resume(resume::Resume),
    Reconcile(reconcile::Reconcile),
    Controller(Box<controller::Controller>),
    Manifests(manifests::Manifests),
    Crds(crds::Crds),
    Doctor(doctor::Doctor),
    Preflight(Box<preflight::Preflight>),
    Provisioners(provisioners::Provisioners),
    MustGather(must_gather::MustGather),
    Uninstall(Box<uninstall::Uninstall>),
    Completion(completion::Completion),
    Man(man::Man),
    /// Print the command-line reference as Markdown
    #[command(hide = true)]
    Reference,
}

impl Command {
    /// Runs the command, and returns its exit code.
    pub async fn run(&self, terminal: &Terminal) -> Result<ExitCode, CommandError> {
        match self {
            Self::Dev(dev) => return dev.run(terminal).await,
            Self::Install(install) => Box::pin(install.run(terminal)).await?,
            Self::Upgrade(upgrade) => Box::pin(upgrade.run(terminal)).await?,
            Self::List(list) => list.run(terminal).await?,
            Self::Outdated(outdated) => Box::pin(outdated.run(terminal)).await?,
            Self::Get(get) => get.run(terminal).await?,
            Self::Content(content) => content.run(terminal).await?,
            Self::Render(render) => render.run(terminal).await?,
            Self::Lint(lint) => lint.run(terminal).await?,
            Self::Push(push) => Box::pin(push.run(terminal)).await?,
            Self::Plugin(plugin) => plugin.run(terminal).await?,
            Self::Catalog(catalog) => return catalog.run(terminal).await,
            Self::Resolve(resolve) => resolve.run(terminal).await?,
            Self::Rbac(rbac) => Box::pin(rbac.run(terminal)).await?,
            Self::Status(status) => return status.run(terminal).await,
            Self::Explain(explain) => explain.run(terminal).await?,
            Self::Events(events) => events.run(terminal).await?,
            Self::Tree(tree) => tree.run(terminal).await?,
            Self::Test(test) => Box::pin(test.run(terminal)).await?,
            Self::Diff(diff) => return Ok(ExitCode::from(Box::pin(diff.run(terminal)).await?)),
            Self::Approve(approve) => Box::pin(approve.run(terminal)).await?,
            Self::Adopt(adopt) => Box::pin(adopt.run(terminal)).await?,
            Self::Migrate(migrate) => Box::pin(migrate.run(terminal)).await?,
            Self::Delete(delete) => Box::pin(delete.run(terminal)).await?,
            Self::Suspend(suspend) => suspend.run(terminal).await?,
            Self::Resume(resume) => resume.run(terminal).await?,
            Self::Reconcile(reconcile) => reconcile.run(terminal).await?,
            Self::History(history) => history.run().await?,
            Self::Rollback(rollback) => Box::pin(rollback.run(terminal)).await?,
            Self::Controller(controller) => Box::pin(controller.run()).await?,
            Self::Manifests(manifests) => manifests.run(terminal)?,
            Self::Crds(crds) => crds.run()?,
            Self::Doctor(doctor) => doctor.run().await?,
            Self::Preflight(preflight) => return Ok(ExitCode::from(Box::pin(preflight.run(terminal)).await?)),
            Self::Provisioners(provisioners) => provisioners.run(terminal)?,
            Self::MustGather(gather) => Box::pin(gather.run(terminal)).await?,
            Self::Uninstall(uninstall) => Box::pin(uninstall.run(terminal)).await?,
            Self::Completion(completion) => completion.run()?,
            Self::Man(man) => man.run(terminal)?,
            Self::Reference => output::print(&reference::markdown())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use chandler_api::{Reason, ReportingKind};
    use clap::CommandFactory as _;

    use super::*;
    use crate::view::{advice::advice, subject::Subject};

    #[test]
    fn the_arguments_pass_the_checks_of_clap() {
        Arguments::command().debug_assert();
    }

    /// The commands of Chandler in a text.
    fn commands(text: &str) -> Vec<Vec<&str>> {
        let quoted = text.split('`').skip(1).step_by(2).filter(|quoted| quoted.starts_with("chandler "));
        quoted.map(|quoted| quoted.split(" | ").next().unwrap().split_whitespace().collect()).collect()
    }

    #[test]
    fn commands_in_suggested_actions_are_complete_or_name_what_the_user_fills_in() {
        let mut parsed = 0;
        for kind in ReportingKind::ALL {
            for reason in Reason::ALL {
                let text = advice(*reason, &Subject::new(*kind, "harbour")).unwrap_or_default();
                for command in commands(&text) {
                    // The argument is in the text around it.
                    if matches!(command.as_slice(), [_, "status" | "lint" | "render"] | [_, "lint", "--config", "FILE"])
                    {
                        continue;
                    }
                    let arguments = Arguments::try_parse_from(command.iter().map(|word| word.replace("NAME", "name")));
                    assert!(arguments.is_ok(), "{kind}, {reason}: {command:?}: {}", arguments.unwrap_err());
                    parsed += 1;
                }
            }
        }
        assert!(parsed > 50, "the commands are found: {parsed}");
    }
}
