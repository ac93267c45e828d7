//! The compiler process as a program of its own: reads a component, writes code. The `chandler` command contains the
//! same function. With a target as its only argument, it compiles for all processors of that target.

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.as_slice() {
        [target] => chandler_engine::precompile_main(target),
        _ => chandler_engine::compile_child_main(),
    }
}
