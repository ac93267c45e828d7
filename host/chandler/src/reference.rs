//! The reference of the command line, made from its CRD.

use std::fmt::Write as _;

use clap::CommandFactory as _;

use crate::Arguments;

/// How wide the help texts are in the reference.
const WIDTH: usize = 100;

/// `docs/cli.md`: what `--help` says, for every command that is not hidden.
pub fn markdown() -> String {
    let mut text = String::from(
        "# The `chandler` command\n\nWhat `--help` says. Made from the code by `cargo xtask generate`; do not edit.\n",
    );
    let mut root = Arguments::command().term_width(WIDTH);
    root.build();
    section(&mut text, "chandler", &mut root);
    for command in root.get_subcommands_mut() {
        if !command.is_hide_set() && command.get_name() != "help" {
            let title = format!("chandler {}", command.get_name());
            section(&mut text, &title, command);
        }
    }
    text
}

fn section(text: &mut String, title: &str, command: &mut clap::Command) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## `{title}`\n\n```text\n{}\n```\n", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_reference_is_what_the_code_makes() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(committed == markdown(), "docs/cli.md is not what the code makes: run `cargo xtask generate`");
    }

    #[test]
    fn every_command_teaches_by_examples_and_tells_its_exit_codes() {
        let root = Arguments::command();
        for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
            let help = command.clone().render_long_help().to_string();
            for word in ["Example", "Exit codes: 0"] {
                assert!(help.contains(word), "{} has no {word}", command.get_name());
            }
        }
    }
}
