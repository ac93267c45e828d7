//! The `chandler` command. The library holds all of it, where tests and documentation can reach it.

use std::process::ExitCode;

/// Returns freed memory to the system, because a controller works in bursts and is idle for hours. `.cargo/config.toml` sets the
/// delay.
#[cfg(all(feature = "jemalloc", target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    chandler::main()
}
