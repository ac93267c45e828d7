//! The `chandler` command. What it does is in the library, where tests and documentation see it.

use std::process::ExitCode;

/// Gives freed memory back to the system: a controller works in bursts and is idle for hours. How soon is in
/// `.cargo/config.toml`.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    chandler::main()
}
