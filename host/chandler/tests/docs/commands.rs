//! The commands that pages name exist, with the flags that they name.

use std::collections::BTreeSet;

use clap::CommandFactory as _;

use crate::page::Page;

/// The page with the list of all commands.
pub(crate) const PAGE: &str = "docs/commands.md";

/// The commands in the table of [`PAGE`] that do not exist, and the commands that are missing in it.
pub(crate) fn missing_in_table(page: &str) -> Vec<String> {
    let table = page.lines().skip_while(|line| *line != "## Commands").skip_while(|line| !line.starts_with('|'));
    let cells = table.take_while(|line| line.starts_with('|')).filter_map(|line| line.split(" | ").next());
    let spans: Vec<String> = cells.flat_map(spans).collect();
    let named: BTreeSet<&str> = spans
        .iter()
        .map(|span| span.strip_prefix("chandler ").unwrap_or(span))
        .filter_map(|span| span.split(' ').next())
        .collect();
    let root = chandler::Arguments::command();
    let commands: Vec<_> = root.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let missing = commands
        .iter()
        .filter(|command| !named.contains(command.get_name()))
        .map(|command| format!("{PAGE}: the table has no `chandler {}`", command.get_name()));
    let unknown = named
        .iter()
        .filter(|name| root.find_subcommand(name).is_none())
        .map(|name| format!("{PAGE}: the table has `chandler {name}`, which does not exist"));
    missing.chain(unknown).collect()
}

/// The commands of a page that do not exist, or not with these flags.
pub(crate) fn problems(page: &Page) -> Vec<String> {
    let root = chandler::Arguments::command();
    let mut problems = Vec::new();
    for (line, number) in page.text.lines().zip(1..) {
        let prompt = line.strip_prefix("$ ").map(|line| line.split(" #").next().unwrap_or(line).to_owned());
        for text in spans(line).into_iter().chain(prompt) {
            for command in text.split(['|', ';', '(', '`']) {
                let Some(arguments) = command.trim().strip_prefix("chandler ") else { continue };
                problems.extend(
                    problem(&root, arguments).map(|problem| format!("{}:{number}: {problem}: {command}", page.name)),
                );
            }
        }
    }
    problems
}

fn problem(root: &clap::Command, arguments: &str) -> Option<String> {
    let mut words = arguments.split_whitespace().peekable();
    let name = words.next()?;
    if !name.starts_with(|first: char| first.is_ascii_lowercase()) || name == "help" {
        return None;
    }
    let Some(command) = root.find_subcommand(name) else { return Some(format!("no command {name}")) };
    // Such as `chandler catalog add`.
    let inner = words.peek().and_then(|word| command.find_subcommand(word));
    // Others of the program are for a place before the command.
    let global = root.get_arguments().filter(|argument| argument.is_global_set());
    let known: BTreeSet<&str> = [command]
        .into_iter()
        .chain(inner)
        .flat_map(clap::Command::get_arguments)
        .chain(global)
        .flat_map(|argument| argument.get_long().into_iter().chain(argument.get_all_aliases().unwrap_or_default()))
        .chain(["help"])
        .collect();
    let flags = words.take_while(|word| *word != "--").filter_map(|word| word.strip_prefix("--"));
    let mut flags =
        flags.map(|flag| flag.split(['=', '[']).next().unwrap_or(flag).trim_end_matches(['.', ',', ']', '\\', '"']));
    flags.find(|flag| !known.contains(flag)).map(|flag| format!("no flag --{flag} of {name}"))
}

/// The code spans of a line.
fn spans(line: &str) -> Vec<String> {
    line.split('`').skip(1).step_by(2).map(|span| span.replace("\\|", "|")).collect()
}
