//! The command line as the user writes it: options of a command may come before it, and an option that the command does not take is
//! explained.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
};

use clap::{CommandFactory as _, FromArgMatches as _};

use super::Arguments;
use crate::{
    CommandError,
    arguments::wait,
    view::{inapplicable, other_tools},
};

/// Options with a value that belong to a command and may come before it.
const OF_COMMANDS: [&str; 4] = ["--kubeconfig", "--context", "--namespace", "-n"];
/// Options of the program. The first one has a value.
const OF_PROGRAM: [&str; 2] = ["--log-level", "--no-color"];

/// Why a command line cannot be run.
#[derive(Debug)]
pub enum Mistake {
    /// clap explains it; or the user asked for help.
    Clap(clap::Error),
    /// This program explains it.
    Usage(CommandError),
}

/// A command line that can be run.
#[derive(Debug)]
pub struct Line {
    /// Its arguments.
    pub arguments: Arguments,
    /// What the user should know about them.
    pub note: Option<&'static str>,
}

/// Parses a command line, which begins with the program.
pub fn parse(words: Vec<OsString>) -> Result<Line, Mistake> {
    let words = ordered(words);
    let command = match words.first().filter(|program| is_plugin(program)) {
        Some(_) => Arguments::command().bin_name("kubectl chandler"),
        None => Arguments::command(),
    };
    let parsed = command.try_get_matches_from(&words).and_then(|matches| {
        let arguments = Arguments::from_arg_matches(&matches)?;
        Ok((arguments, matches))
    });
    match parsed {
        Ok((arguments, matches)) => {
            let note = wait::check(&matches).map_err(Mistake::Usage)?;
            Ok(Line { arguments, note })
        }
        Err(error) => {
            let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
            let command = path(&words);
            let explained = misplaced(&error, &command).or_else(|| inapplicable::explain(&error, &command));
            match explained {
                Some(explained) => Err(Mistake::Usage(explained)),
                None => Err(Mistake::Clap(other_tools::with_tip(error, &words))),
            }
        }
    }
}

/// Whether kubectl runs this program, as `kubectl chandler`: the usage names the command that the user wrote.
fn is_plugin(program: &OsStr) -> bool {
    Path::new(program).file_name().is_some_and(|name| name.to_string_lossy().starts_with("kubectl-"))
}

/// Moves the options of the command that come before it behind it. A line without a command stays as it is.
pub fn ordered(words: Vec<OsString>) -> Vec<OsString> {
    let root = Arguments::command();
    let (mut kept, mut moved) = (Vec::new(), Vec::new());
    let mut rest = words.into_iter();
    kept.extend(rest.next());
    let mut known = &root;
    while let Some(word) = rest.next() {
        match Word::of(&word) {
            Word::OfCommand { has_value } => {
                moved.push(word);
                if !has_value {
                    moved.extend(rest.next());
                }
            }
            Word::OfProgram { takes_next } => {
                kept.push(word);
                if takes_next {
                    kept.extend(rest.next());
                }
            }
            Word::Other => {
                let found = known.find_subcommand(&word).filter(|_| word != "help");
                if found.is_none() {
                    // clap reports it.
                    moved.push(word);
                    break;
                }
                kept.push(word);
                match found {
                    Some(command) if command.has_subcommands() => known = command,
                    // Behind the command, and before its own arguments.
                    _ => break,
                }
            }
        }
    }
    kept.extend(moved);
    kept.extend(rest);
    kept
}

/// What a word before the command is.
enum Word {
    /// An option of the command, which has its value after `=` or in the next word.
    OfCommand { has_value: bool },
    /// An option of the program, whose value may be the next word.
    OfProgram { takes_next: bool },
    /// Anything else.
    Other,
}

impl Word {
    fn of(word: &OsStr) -> Self {
        let Some(word) = word.to_str() else { return Self::Other };
        let (option, value) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
        if OF_COMMANDS.contains(&option) {
            return Self::OfCommand { has_value: value.is_some() };
        }
        if word.starts_with("-n") {
            return Self::OfCommand { has_value: true };
        }
        match OF_PROGRAM {
            [with_value, _] if option == with_value => Self::OfProgram { takes_next: value.is_none() },
            [_, flag] if option == flag => Self::OfProgram { takes_next: false },
            _ => Self::Other,
        }
    }
}

/// The error in words, if clap refuses an option before the command that the command takes behind it.
fn misplaced(error: &clap::Error, command: &str) -> Option<CommandError> {
    let option = inapplicable::unknown_option(error)?;
    let root = Arguments::command();
    let known = command.split_whitespace().try_fold(&root, |known, name| known.find_subcommand(name))?;
    let is_it = |argument: &clap::Arg| {
        argument.get_long().is_some_and(|long| option.strip_prefix("--") == Some(long))
            || argument
                .get_short()
                .is_some_and(|short| option.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4])))
    };
    let taken = known.get_arguments().find(|argument| is_it(argument)).filter(|_| !command.is_empty())?;
    let value = taken.get_value_names().into_iter().flatten().next().filter(|_| taken.get_action().takes_values());
    let value = value.map(|value| format!(" {value}")).unwrap_or_default();
    Some(
        CommandError::usage(format!("{option} belongs to the command, and comes behind it"))
            .hint(format!("write `chandler {command} {option}{value}`")),
    )
}

/// The command that a line names, such as `catalog add`; empty if it names none that can run.
fn path(words: &[String]) -> String {
    let root = Arguments::command();
    let (mut known, mut names) = (&root, Vec::new());
    for word in words.iter().skip(1) {
        if let Some(command) = known.find_subcommand(word) {
            names.push(command.get_name());
            known = command;
        } else if can_run(known) {
            break;
        }
    }
    if can_run(known) { names.join(" ") } else { String::new() }
}

/// Whether a command can run without one of its subcommands.
fn can_run(command: &clap::Command) -> bool {
    !command.has_subcommands() || command.is_subcommand_negates_reqs_set()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn options_of_a_command_move_behind_it() {
        for (written, expected) in [
            ("chandler --context a list", "chandler list --context a"),
            ("chandler -n y install x ./y", "chandler install -n y x ./y"),
            ("chandler --namespace=y -nz list -o json", "chandler list --namespace=y -nz -o json"),
            (
                "chandler --log-level debug --kubeconfig f --no-color tree x",
                "chandler --log-level debug --no-color tree --kubeconfig f x",
            ),
            ("chandler --context a catalog --kubeconfig f list", "chandler catalog list --context a --kubeconfig f"),
            ("chandler --context a migrate storage --apply", "chandler migrate storage --context a --apply"),
            ("chandler --context a migrate olm --apply", "chandler migrate --context a olm --apply"),
            ("chandler list --context a", "chandler list --context a"),
            ("chandler --context a", "chandler --context a"),
            ("chandler --context a --unknown list", "chandler --context a --unknown list"),
            ("chandler -n y help list", "chandler -n y help list"),
            ("chandler", "chandler"),
        ] {
            assert_eq!(ordered(line(written)), line(expected), "{written}");
        }
    }

    #[test]
    fn the_command_gets_what_was_written_before_it() {
        let parsed = parse(line("chandler --context a --kubeconfig f -n y list")).unwrap();
        let super::super::Command::List(list) = parsed.arguments.command else { panic!("{parsed:?}") };
        assert_eq!((list.connection.context.as_deref(), list.namespace.as_deref()), (Some("a"), Some("y")));
        assert_eq!(list.connection.kubeconfig.as_deref(), Some(std::path::Path::new("f")));
        assert!(parse(line("chandler --context a list --context b")).is_err());
    }

    /// What is wrong with a line.
    fn mistake(text: &str) -> String {
        match parse(line(text)).unwrap_err() {
            Mistake::Usage(error) => error.to_string(),
            Mistake::Clap(error) => format!("clap: {error}"),
        }
    }

    #[test]
    fn an_option_without_a_meaning_is_explained() {
        let lines = [
            "chandler -n y status x",
            "chandler catalog remove x --namespace y",
            "chandler --context a push ./x r.example.com/x:v1",
            "chandler suspend x --wait",
            "chandler list --timeout=5m",
            "chandler list --dry-run",
            "chandler completion bash -o json",
        ];
        insta::assert_snapshot!(lines.map(|text| format!("{text}\n{}\n", mistake(text))).join("\n"));
        assert!(mistake("chandler status x --outptu json").starts_with("clap: "));
    }

    #[test]
    fn an_option_that_the_command_takes_is_not_called_unknown_before_it() {
        let lines = ["chandler -o json list", "chandler --output json catalog list", "chandler --yes delete x"];
        insta::assert_snapshot!(lines.map(mistake).join("\n"), @r"
        error: -o belongs to the command, and comes behind it
          hint: write `chandler list -o FORMAT`
        error: --output belongs to the command, and comes behind it
          hint: write `chandler catalog list --output FORMAT`
        error: --yes belongs to the command, and comes behind it
          hint: write `chandler delete --yes`
        ");
    }

    #[test]
    fn an_option_that_waits_for_nothing_is_refused() {
        let lines = ["chandler install x ./y --wait=false --timeout 5m", "chandler migrate olm --timeout 5m"];
        insta::assert_snapshot!(lines.map(|text| format!("{text}\n{}\n", mistake(text))).join("\n"));
        for accepted in ["chandler install x ./y --wait=false", "chandler resume x --timeout 5m"] {
            assert_eq!(parse(line(accepted)).unwrap().note, None, "{accepted}");
        }
        // A whole command line is previewed by one more option.
        let previewed = parse(line("chandler delete x --timeout 5m --dry-run")).unwrap();
        assert!(previewed.note.unwrap().contains("have no effect"));
        assert_eq!(parse(line("chandler delete x --dry-run --wait=false")).unwrap().note, None);
    }
}
