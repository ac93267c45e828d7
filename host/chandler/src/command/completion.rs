//! `chandler completion`, and the completion of command lines with names from the cluster.

use std::ffi::{OsStr, OsString};

use clap::{Arg, CommandFactory as _};
use clap_complete::{
    ArgValueCandidates, ArgValueCompleter, CompleteEnv, CompletionCandidate, PathCompleter,
    engine::ValueCompleter as _,
    env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh},
};

use super::{Arguments, catalog, delete, explain, reconcile, status, upgrade};
use crate::{
    CommandError,
    arguments::target::{DEPLOYMENTS, INSTALLED, SUSPENDED, Takes},
    read::names::{Named, Place, names},
    view::output,
};

/// The environment variable that turns a call of this program into a completion.
const VARIABLE: &str = "CHANDLER_COMPLETE";

/// Print a completion script for a shell
///
/// The script calls this program for each completion, so that names of BundleDeployments, Resolutions, Catalogs, revisions, namespaces,
/// provisioner classes and contexts come from the cluster and the kubeconfig, and packages from the indexes of catalogs in the cache of this
/// machine. Without an answer within a second there are none. The script for zsh loads the completion system (compinit) if ~/.zshrc has not.
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
    chandler completion fish > ~/.config/fish/completions/chandler.fish
  As a plugin of kubectl:
    chandler completion kubectl > ~/.krew/bin/kubectl_complete-chandler
    chmod +x ~/.krew/bin/kubectl_complete-chandler")]
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
    /// kubectl, which completes its plugins: a program kubectl_complete-chandler on the PATH
    Kubectl,
}

impl Shell {
    /// The script.
    fn script(self) -> Result<String, CommandError> {
        let completer: &dyn EnvCompleter = match self {
            Self::Bash => &Bash,
            Self::Zsh => &Zsh,
            Self::Fish => &Fish,
            Self::Elvish => &Elvish,
            Self::PowerShell => &Powershell,
            Self::Kubectl => return Ok(KUBECTL.to_owned()),
        };
        let mut script = Vec::new();
        let name = "chandler";
        completer
            .write_registration(VARIABLE, name, name, name, &mut script)
            .map_err(|error| CommandError::failed("failed to write the script").because(&error))?;
        let script = String::from_utf8_lossy(&script).into_owned();
        Ok(if self == Self::Zsh { script.replace("\ncompdef ", ZSH) } else { script })
    }
}

/// The program that kubectl runs to complete `kubectl chandler`. Its last line tells kubectl not to complete file names.
/// <https://kubernetes.io/docs/tasks/extend-kubectl/kubectl-plugins/>
const KUBECTL: &str = "\
#!/bin/sh
# Completes `kubectl chandler`: an executable file of the name kubectl_complete-chandler on the PATH, beside kubectl-chandler.
newline='
'
CHANDLER_COMPLETE=bash _CLAP_COMPLETE_INDEX=$# _CLAP_IFS=$newline kubectl-chandler -- chandler \"$@\"
printf '\\n:4\\n'
";

/// What loads the completion system of zsh, unless ~/.zshrc has, before the script registers itself.
const ZSH: &str = "\nif (( ! $+functions[compdef] )); then\n    autoload -Uz compinit && compinit\nfi\ncompdef ";

impl Completion {
    /// Prints the script.
    pub fn run(&self) -> Result<(), CommandError> {
        output::print(&self.shell.script()?)
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
        "remove" => catalog::remove::TAKES,
        "tree" | "diff" | "history" | "rollback" | "approve" => INSTALLED,
        "suspend" | "resume" => SUSPENDED,
        _ => DEPLOYMENTS,
    }
}

/// What completes an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completes {
    /// A name.
    Name(Named),
    /// A name, or a path.
    NameOrPath(Named),
}

/// The command, with the candidates of arguments whose values are names.
fn command() -> clap::Command {
    with_candidates(Arguments::command())
}

/// The command and the commands below it, with the candidates of their arguments.
fn with_candidates(command: clap::Command) -> clap::Command {
    let name = command.get_name().to_owned();
    let completed = command.mut_args(move |argument| match completes(&argument, &name) {
        Some(Completes::Name(named)) => argument.add(ArgValueCandidates::new(move || candidates(named))),
        Some(Completes::NameOrPath(named)) => {
            argument.add(ArgValueCompleter::new(move |typed: &OsStr| candidates_and_paths(named, typed)))
        }
        None => argument,
    });
    completed.mut_subcommands(with_candidates)
}

/// What completes an argument of a command, or `None` if its value is new, or neither a name nor a path.
fn completes(argument: &Arg, command: &str) -> Option<Completes> {
    if argument.is_positional() {
        let objects = Named::Objects(taken(command).taken());
        let names: Vec<&str> = argument.get_value_names()?.iter().map(AsRef::as_ref).collect();
        return match names.as_slice() {
            // The only argument of `install` is the bundle; the name of a Catalog to add is new.
            ["NAME"] if command == "install" => Some(Completes::NameOrPath(Named::Packages)),
            ["NAME"] if command == "add" => None,
            ["NAME"] => Some(Completes::Name(objects)),
            ["NAME|BUNDLE"] => Some(Completes::NameOrPath(objects)),
            ["BUNDLE"] if matches!(command, "install" | "upgrade") => Some(Completes::NameOrPath(Named::Packages)),
            ["PACKAGE" | "PACKAGE[@RANGE]"] => Some(Completes::Name(Named::Packages)),
            _ => None,
        };
    }
    let catalogs = Named::Objects(catalog::remove::TAKES.taken());
    match argument.get_long()? {
        "namespace" | "system-namespace" => Some(Completes::Name(Named::Namespaces)),
        "class" => Some(Completes::Name(Named::Classes)),
        "context" => Some(Completes::Name(Named::Contexts)),
        "catalog" if argument.get_action().takes_values() => Some(Completes::NameOrPath(catalogs)),
        "to" if command == "rollback" => Some(Completes::Name(Named::Revisions)),
        _ => None,
    }
}

fn candidates(named: Named) -> Vec<CompletionCandidate> {
    names(named, &place(std::env::args_os())).into_iter().map(CompletionCandidate::new).collect()
}

/// The names that begin with what was typed, and the paths. A path needs no cluster.
fn candidates_and_paths(named: Named, typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = PathCompleter::any().complete(typed);
    let typed = typed.to_string_lossy();
    if !typed.contains(['.', ':', '~']) && !typed.starts_with('/') {
        found.extend(
            candidates(named).into_iter().filter(|name| name.get_value().to_string_lossy().starts_with(&*typed)),
        );
    }
    found
}

/// Where the incomplete command line looks for names: its cluster, its cache, and the object that it is about.
fn place(words: impl IntoIterator<Item = OsString>) -> Place {
    let cache_directory = std::env::var_os("CHANDLER_CACHE_DIRECTORY").map(Into::into);
    let mut place = Place { cache_directory, ..Place::default() };
    let mut words = words.into_iter();
    let mut is_rollback = false;
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { continue };
        let (option, value) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value.into())));
        let text = |value: Option<OsString>| value.and_then(|value| value.into_string().ok());
        match option {
            "--kubeconfig" => place.connection.kubeconfig = value.or_else(|| words.next()).map(Into::into),
            "--context" => place.connection.context = text(value.or_else(|| words.next())),
            "--cache-directory" => place.cache_directory = value.or_else(|| words.next()).map(Into::into),
            "--to" | "--timeout" | "--system-namespace" if value.is_none() => drop(words.next()),
            "rollback" if !is_rollback => is_rollback = true,
            name if is_rollback && !name.starts_with('-') && place.of.is_none() => {
                place.of = INSTALLED.parse(name).ok().map(|target| (target.name.clone(), target.is_resolution()));
            }
            _ => {}
        }
    }
    place
}

#[cfg(test)]
mod tests {
    use chandler_api::ReportingKind;

    use super::*;
    use crate::read::cluster::ConnectionOptions;

    #[test]
    fn the_command_line_says_where_names_are() {
        let of = |words: &[&str]| {
            let ConnectionOptions { kubeconfig, context } = place(words.iter().map(OsString::from)).connection;
            (kubeconfig.map(|path| path.display().to_string()), context)
        };
        let own = |text: &str| Some(text.to_owned());
        assert_eq!(of(&["chandler", "status", ""]), (None, None));
        assert_eq!(of(&["chandler", "--kubeconfig", "a", "--context=b"]), (own("a"), own("b")));
        for (words, of) in [
            (vec!["chandler", "rollback", "--timeout", "5m", "shop", "--to", ""], Some(("shop".to_owned(), false))),
            (vec!["chandler", "rollback", "resolution/shop", "--to", ""], Some(("shop".to_owned(), true))),
            (vec!["chandler", "status", "shop"], None),
        ] {
            assert_eq!(place(words.iter().map(OsString::from)).of, of, "{words:?}");
        }
    }

    /// What completes an argument of a command.
    fn of(path: &str, argument: &str) -> Option<Completes> {
        let root = Arguments::command();
        let found = path.split(' ').fold(&root, |command, name| command.find_subcommand(name).unwrap());
        let argument = found.get_arguments().find(|it| it.get_id() == argument).unwrap();
        completes(argument, found.get_name())
    }

    #[test]
    fn names_complete_where_something_exists() {
        const DEPLOYMENT: &[ReportingKind] = &[ReportingKind::BundleDeployment];
        const CATALOG: &[ReportingKind] = &[ReportingKind::Catalog];
        let objects = |kinds| Some(Completes::Name(Named::Objects(kinds)));
        for (path, argument, expected) in [
            ("status", "name", objects(status::TAKES.taken())),
            ("delete", "name", objects(DEPLOYMENT)),
            ("upgrade", "name", objects(DEPLOYMENT)),
            ("upgrade", "bundle", Some(Completes::NameOrPath(Named::Packages))),
            ("get", "name", objects(DEPLOYMENT)),
            ("diff", "bundle", Some(Completes::NameOrPath(Named::Objects(INSTALLED.taken())))),
            ("install", "bundle", Some(Completes::NameOrPath(Named::Packages))),
            ("install", "namespace", Some(Completes::Name(Named::Namespaces))),
            ("install", "class", Some(Completes::Name(Named::Classes))),
            ("install", "catalogs", Some(Completes::NameOrPath(Named::Objects(CATALOG)))),
            ("status", "context", Some(Completes::Name(Named::Contexts))),
            ("resolve", "packages", Some(Completes::Name(Named::Packages))),
            ("rollback", "to", Some(Completes::Name(Named::Revisions))),
            ("catalog remove", "name", objects(CATALOG)),
            ("catalog show", "package", Some(Completes::Name(Named::Packages))),
            ("catalog graph", "catalogs", Some(Completes::NameOrPath(Named::Objects(CATALOG)))),
            ("install", "name", Some(Completes::NameOrPath(Named::Packages))),
            ("catalog add", "name", None),
            ("render", "name", None),
            ("render", "bundle", None),
            ("push", "catalog", None),
            ("content", "to", None),
        ] {
            assert_eq!(of(path, argument), expected, "{path} {argument}");
        }
        let added = command();
        let name = |argument: &&Arg| argument.get_id() == "name";
        let delete = added.find_subcommand("delete").unwrap().get_arguments().find(name);
        assert!(delete.unwrap().get::<ArgValueCandidates>().is_some());
        let remove = added.find_subcommand("catalog").unwrap().find_subcommand("remove").unwrap();
        assert!(remove.get_arguments().find(name).unwrap().get::<ArgValueCandidates>().is_some());
    }

    #[test]
    fn the_script_for_zsh_loads_the_completion_system() {
        let script = Shell::Zsh.script().unwrap();
        assert!(script.starts_with("#compdef chandler\n"), "{script}");
        let (before, after) = script.split_once("autoload -Uz compinit && compinit").unwrap();
        assert!(!before.contains("\ncompdef ") && after.contains("\ncompdef "), "{script}");
        assert!(!Shell::Bash.script().unwrap().contains("compinit"));
    }
}
