//! Asking before something is done that cannot be undone.

use std::io::{self, BufRead, IsTerminal as _};

use crate::{CommandError, terminal::Terminal};

/// Whether the user agrees: `--yes` does it beforehand, else whoever sits at the terminal is asked. Anything but yes is no.
///
/// # Errors
/// Where nobody can be asked.
pub fn given(terminal: &Terminal, question: &str, beforehand: bool) -> Result<bool, CommandError> {
    if beforehand {
        return Ok(true);
    }
    if !io::stdin().is_terminal() {
        return Err(CommandError::usage(format!(
            "{question} Standard input is not a terminal, so the command cannot ask"
        ))
        .hint("pass --yes to agree"));
    }
    terminal.write(format!("{question} [y/N] "));
    answered(&mut io::stdin().lock())
}

fn answered(from: &mut impl BufRead) -> Result<bool, CommandError> {
    let mut answer = String::new();
    from.read_line(&mut answer).map_err(|error| CommandError::failed("failed to read the answer").because(&error))?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_consent() {
        for (answer, consent) in
            [("y\n", true), ("YES\n", true), ("\n", false), ("", false), ("no\n", false), ("yep", false)]
        {
            assert_eq!(answered(&mut answer.as_bytes()).unwrap(), consent, "{answer:?}");
        }
    }
}
