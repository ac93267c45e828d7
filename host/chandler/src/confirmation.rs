//! Asks the user for confirmation before a change.

use std::io::{self, BufRead, IsTerminal as _};

use crate::{CommandError, view::terminal::Terminal};

/// Whether the user confirms: `yes` is `--yes`; without it the user is asked at the terminal. Any answer except yes is no.
///
/// # Errors
/// Standard input is not a terminal, or cannot be read.
pub fn confirmed(terminal: &Terminal, question: &str, yes: bool) -> Result<bool, CommandError> {
    if yes {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(
            CommandError::usage(format!("{question} Standard input is not a terminal")).hint("pass --yes to confirm")
        );
    }
    terminal.write(format!("{question} [y/N] "));
    is_yes(&mut io::stdin().lock())
}

fn is_yes(input: &mut impl BufRead) -> Result<bool, CommandError> {
    let mut answer = String::new();
    input.read_line(&mut answer).map_err(|error| CommandError::failed("failed to read the answer").because(&error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_confirms() {
        for (answer, confirmed) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false), ("yep", false)]
        {
            assert_eq!(is_yes(&mut answer.as_bytes()).unwrap(), confirmed, "{answer:?}");
        }
    }
}
