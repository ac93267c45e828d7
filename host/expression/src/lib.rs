//! Other people's expressions in the Common Expression Language: what may be compiled, where, and how deep it goes.
//!
//! The parser and the interpreter are not ours, recurse over the text, and cannot be interrupted. Whoever takes expressions
//! from a bundle, a CRD or a spec bounds them with this before anything is run.
//!
//! | module | holds |
//! |---|---|
//! | [`compile`](mod@compile) | the bounds of a text, and the program that it is |
//! | [`patterns`] | what the regular expressions of a program take |
//! | [`stack`] | a stack for the parser, where a panic ends nothing else |
//! | [`tree`] | how deep a program and its loops nest |

pub mod compile;
pub mod patterns;
pub mod stack;
pub mod tree;

pub use compile::{CompileError, brackets, compile};
pub use patterns::Patterns;
pub use stack::{StackError, on_large_stack};
pub use tree::{depth, loops};
