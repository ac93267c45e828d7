//! Build, test and demo tasks.
fn main() {}
