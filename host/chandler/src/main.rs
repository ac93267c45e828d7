//! The chandler command.
fn main() {}
