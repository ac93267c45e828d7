//! The compiler process as a program of its own: reads a component, writes code. The `chandler` command contains the
//! same function.

fn main() -> std::process::ExitCode {
    chandler_engine::compile_child_main()
}
