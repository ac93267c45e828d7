//! The command line of this process, for hints that name a whole command.

use std::ffi::OsString;

/// The command with these arguments, the first of which is the program, and more arguments at the end. A shell can run it.
pub fn again(arguments: impl IntoIterator<Item = OsString>, more: &[&str]) -> String {
    let given = arguments.into_iter().skip(1).map(|argument| quoted(&argument.to_string_lossy()));
    let more = more.iter().map(|argument| quoted(argument));
    std::iter::once("chandler".to_owned()).chain(given).chain(more).collect::<Vec<_>>().join(" ")
}

/// An argument as a shell reads it. Every hint that repeats a name that the user did not write uses it: names may have any characters.
pub fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument.to_owned();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_the_same_arguments() {
        for (given, text) in [
            ("install|./dir|-n|tenant", "chandler install ./dir -n tenant --set a=b"),
            ("install|my dir|--set|x={1,2}", "chandler install 'my dir' --set 'x={1,2}' --set a=b"),
            ("install||it's", r"chandler install '' 'it'\''s' --set a=b"),
        ] {
            let arguments = std::iter::once("/bin/x").chain(given.split('|')).map(OsString::from);
            assert_eq!(again(arguments, &["--set", "a=b"]), text);
        }
    }
}
