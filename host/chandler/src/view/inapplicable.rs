//! Options that many commands take, given to a command that does not take them: why it does not.

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::error::CommandError;

/// The option that clap does not know, without its value.
pub fn unknown_option(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidArg).filter(|_| error.kind() == ErrorKind::UnknownArgument) {
        Some(ContextValue::String(given)) => given.split(['=', ' ']).next().filter(|option| option.starts_with('-')),
        _ => None,
    }
}

/// The error in words, if clap refuses an option that other commands take. `command` is the command, such as `catalog add`.
pub fn explain(error: &clap::Error, command: &str) -> Option<CommandError> {
    let option = unknown_option(error).filter(|_| !command.is_empty())?;
    let (why, hint) = match option {
        "-n" | "--namespace" => (
            "BundleDeployments, Catalogs and the other kinds of Chandler are cluster-scoped",
            "omit it; `chandler list -n NAMESPACE` lists what is installed in a namespace",
        ),
        "--context" | "--kubeconfig" => ("it contacts no cluster", "omit it"),
        "--wait" | "--timeout" => (
            "it waits for nothing",
            "omit it; `chandler status NAME --watch --timeout 5m` waits until a BundleDeployment is healthy",
        ),
        "--dry-run" => ("it changes nothing", "omit it"),
        "-o" | "--output" => ("it prints no object and no list", "omit it"),
        _ => return None,
    };
    Some(CommandError::usage(format!("`chandler {command}` does not take {option}: {why}")).hint(hint))
}
