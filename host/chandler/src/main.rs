//! The `chandler` command. What it does is in the library, where tests and documentation see it.

use std::process::ExitCode;

/// Gives memory back to the system after a burst, which the C library's allocator keeps: a controller is idle most of its life.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    chandler::main()
}
