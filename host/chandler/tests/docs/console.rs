//! The steps of a console block.

/// A command, and what is shown of its result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// The command, without the prompt; it may have several lines.
    pub(crate) command: String,
    /// The lines that are shown.
    pub(crate) output: Vec<String>,
    /// The exit code: N of the comment `# exits with N`, or 0.
    pub(crate) exit: i32,
    /// Its line in the block, from 0.
    pub(crate) line: usize,
}

/// The steps of a block. Lines after `$ ` are commands. A command continues in the next line after a backslash, and until the end of
/// a here-document.
pub(crate) fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut open = false;
    for (line, text) in block.lines().enumerate() {
        if let Some(command) = text.strip_prefix("$ ") {
            let exit = command.rsplit_once("# exits with ").and_then(|(_, code)| code.trim().parse().ok());
            steps.push(Step { command: command.to_owned(), output: Vec::new(), exit: exit.unwrap_or(0), line });
        } else if let Some(step) = steps.last_mut() {
            if open {
                step.command.push('\n');
                step.command.push_str(text);
            } else {
                step.output.push(text.to_owned());
            }
        }
        open = steps.last().is_some_and(|step| step.output.is_empty() && is_open(&step.command));
    }
    steps
}

/// Whether the command continues in the next line.
fn is_open(command: &str) -> bool {
    if command.ends_with('\\') {
        return true;
    }
    let Some((_, after)) = command.split_once("<<") else { return false };
    let mark: String = after.trim_start_matches(['-', '\'']).chars().take_while(char::is_ascii_alphanumeric).collect();
    !command.lines().skip(1).any(|line| line == mark)
}

#[test]
fn commands_and_their_output() {
    let steps = steps("$ a b \\\n    c\none\n\n$ d   # exits with 3\n$ cat <<EOF\nx: 1\nEOF\ntwo\n");
    let found: Vec<_> =
        steps.iter().map(|step| (step.command.as_str(), step.output.len(), step.exit, step.line)).collect();
    assert_eq!(found, [("a b \\\n    c", 2, 0, 0), ("d   # exits with 3", 0, 3, 4), ("cat <<EOF\nx: 1\nEOF", 1, 0, 5)]);
}
