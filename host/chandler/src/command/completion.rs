//! `chandler completion`, and the completion of command lines with names from the cluster.

use std::ffi::OsString;

use clap::{Arg, CommandFactory as _};
use clap_complete::{
    ArgValueCandidates, CompleteEnv, CompletionCandidate,
    env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh},
};

use super::{Arguments, catalog, delete, explain, reconcile, status, upgrade};
use crate::{
    CommandError,
    arguments::target::{DEPLOYMENTS, INSTALLED, SUSPENDED, Takes},
    read::{
        cluster::ConnectionOptions,
        names::{Named, names},
    },
    view::output,
};

/// The environment variable that turns a call of this program into a completion.
const VARIABLE: &str = "CHANDLER_COMPLETE";

/// Print a completion script for a shell
///
/// The script calls this program for each completion, so that names of BundleDeployments, namespaces, provisioner classes and contexts
/// come from the cluster and the kubeconfig. Without an answer within a second there are none.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The script on standard output.

Exit codes: 0 success, 2 wrong usage

Examples:
  In ~/.bashrc:
    source <(chandler completion bash)
  In ~/.zshrc:
    source <(chandler completion zsh)
  For fish:
    chandler completion fish > ~/.config/fish/completions/chandler.fish")]
pub struct Completion {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// Bash
    Bash,
    /// Zsh
    Zsh,
    /// Fish
    Fish,
    /// Elvish
    Elvish,
    /// PowerShell
    #[value(name = "powershell")]
    PowerShell,
}

impl Completion {
    /// Prints the script.
    pub fn run(&self) -> Result<(), CommandError> {
        let completer: &dyn EnvCompleter = match self.shell {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
            Shell::Elvish => &Elvish,
            Shell::PowerShell => &Powershell,
        };
        let mut script = Vec::new();
        let name = "chandler";
        completer
            .write_registration(VARIABLE, name, name, name, &mut script)
            .map_err(|error| CommandError::failed("failed to write the script").because(&error))?;
        output::print(&String::from_utf8_lossy(&script))
    }
}

/// Answers a shell that completes a command line, and exits; returns if this call is none.
pub fn answer() {
    CompleteEnv::with_factory(command).var(VARIABLE).complete();
}

/// The kinds that a command takes.
fn taken(command: &str) -> Takes {
    match command {
        "status" | "events" => status::TAKES,
        "explain" => explain::TAKES,
        "reconcile" => reconcile::TAKES,
        "delete" => delete::TAKES,
        "upgrade" => upgrade::TAKES,
        "tree" | "diff" | "history" | "rollback" | "approve" => INSTALLED,
        "suspend" | "resume" => SUSPENDED,
        _ => DEPLOYMENTS,
    }
}

/// The command, with the candidates of arguments whose values are names.
fn command() -> clap::Command {
    Arguments::command().mut_subcommands(|subcommand| {
        let is_new = subcommand.get_name() == "install";
        let takes = taken(subcommand.get_name());
        let is_catalog = subcommand.get_name() == "catalog";
        let completed = subcommand.mut_args(move |argument| match named(&argument, takes) {
            Some(Named::Objects(_)) if is_new => argument,
            Some(named) => argument.add(ArgValueCandidates::new(move || candidates(named))),
            None => argument,
        });
        if !is_catalog {
            return completed;
        }
        completed.mut_subcommand("remove", |remove| {
            remove.mut_arg("name", |name| {
                name.add(ArgValueCandidates::new(|| candidates(Named::Objects(catalog::remove::TAKES.taken()))))
            })
        })
    })
}

/// The object that an argument's value names, or `None` if no such object exists.
fn named(argument: &Arg, takes: Takes) -> Option<Named> {
    if argument.is_positional() {
        let names = argument.get_value_names()?;
        return names
            .iter()
            .any(|name| name == "NAME" || name == "NAME|BUNDLE")
            .then_some(Named::Objects(takes.taken()));
    }
    match argument.get_long()? {
        "namespace" | "system-namespace" => Some(Named::Namespaces),
        "class" => Some(Named::Classes),
        "context" => Some(Named::Contexts),
        _ => None,
    }
}

fn candidates(named: Named) -> Vec<CompletionCandidate> {
    let connection = connection(std::env::args_os());
    names(named, &connection).into_iter().map(CompletionCandidate::new).collect()
}

/// The connection that the incomplete command line selects.
fn connection(words: impl IntoIterator<Item = OsString>) -> ConnectionOptions {
    let mut connection = ConnectionOptions::default();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { continue };
        let (option, value) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value.into())));
        match option {
            "--kubeconfig" => connection.kubeconfig = value.or_else(|| words.next()).map(Into::into),
            "--context" => {
                connection.context =
                    value.or_else(|| words.next()).and_then(|value: OsString| value.into_string().ok());
            }
            _ => {}
        }
    }
    connection
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_is_that_of_the_command_line() {
        let of = |words: &[&str]| {
            let ConnectionOptions { kubeconfig, context } = connection(words.iter().map(OsString::from));
            (kubeconfig.map(|path| path.display().to_string()), context)
        };
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(of(&["chandler", "status", ""]), (None, None));
        assert_eq!(of(&["chandler", "--kubeconfig", "a", "--context=b"]), (own("a"), own("b")));
    }

    #[test]
    fn names_complete_where_something_exists() {
        let root = command();
        let of = |command: &str, argument: &str| {
            let command = root.find_subcommand(command).unwrap();
            let argument = command.get_arguments().find(|it| it.get_id() == argument).unwrap();
            argument.get::<ArgValueCandidates>().is_some()
        };
        for (command, argument) in [
            ("status", "name"),
            ("delete", "name"),
            ("upgrade", "name"),
            ("get", "name"),
            ("diff", "bundle"),
            ("install", "namespace"),
            ("install", "class"),
            ("status", "context"),
        ] {
            assert!(of(command, argument), "{command} {argument}");
        }
        let catalog = root.find_subcommand("catalog").unwrap().find_subcommand("remove").unwrap();
        assert!(catalog.get_arguments().any(|it| it.get_id() == "name" && it.get::<ArgValueCandidates>().is_some()));
        for (command, argument) in [("install", "name"), ("render", "name"), ("install", "bundle")] {
            assert!(!of(command, argument), "{command} {argument}");
        }
    }
}
