//! `docs/cli.md`: the command-line reference, generated from the help.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use super::Arguments;

/// The width of the help in columns.
const WIDTH: usize = 100;

/// The content of `docs/cli.md`: the `--help` of every command that is not hidden.
pub fn markdown() -> String {
    let mut text = String::from(
        "# The `chandler` command\n\nThe output of `--help`. `cargo xtask generate` generates this page from the code; do not edit it.\n",
    );
    let mut root = Arguments::command().term_width(WIDTH);
    root.build();
    section(&mut text, "chandler", &mut root);
    below(&mut text, "chandler", &mut root);
    text
}

fn below(text: &mut String, above: &str, command: &mut clap::Command) {
    for command in command.get_subcommands_mut() {
        if !command.is_hide_set() && command.get_name() != "help" {
            let title = format!("{above} {}", command.get_name());
            section(text, &title, command);
            below(text, &title, command);
        }
    }
}

fn section(text: &mut String, title: &str, command: &mut clap::Command) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## `{title}`\n\n```text\n{}\n```\n", lines.join("\n"));
}

#[cfg(all(test, feature = "dev"))]
mod tests {
    use super::*;

    #[test]
    fn the_committed_reference_is_up_to_date() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == markdown(), "docs/cli.md is out of date: run `cargo xtask generate`");
    }

    #[test]
    fn every_command_has_examples_and_exit_codes() {
        let root = Arguments::command();
        let nested = root.get_subcommands().flat_map(clap::Command::get_subcommands);
        for command in root.get_subcommands().chain(nested).filter(|command| !command.is_hide_set()) {
            let help = command.clone().render_long_help().to_string();
            for word in ["Example", "Exit codes: 0"] {
                assert!(help.contains(word), "{} has no {word}", command.get_name());
            }
        }
    }
}
