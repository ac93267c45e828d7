//! The `chandler` command. What it does is in the library, where tests and documentation see it.

use std::process::ExitCode;

fn main() -> ExitCode {
    chandler::main()
}
