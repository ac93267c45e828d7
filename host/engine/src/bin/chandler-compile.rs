//! The compiler's process on its own: reads a component, writes code. The `chandler` command has the same inside.

fn main() -> std::process::ExitCode {
    chandler_engine::compile_child_main()
}
