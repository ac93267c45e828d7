//! Untrusted expressions in the Common Expression Language: which are compiled, where, and how deep they may nest.
//!
//! The parser and the functions are third-party code, recurse over the text, and cannot be interrupted. Code that takes
//! expressions from a bundle, a CRD or a spec runs them with the evaluator of this crate, and never with the library's: a few hundred
//! bytes can make values of gigabytes.
//!
//! | module | contents |
//! |---|---|
//! | [`compile`] | the bounds of a text |
//! | [`patterns`] | the cost of the regular expressions of a program |
//! | [`stack`] | a large stack for the parser, on which a panic is contained |
//! | [`tree`] | the depth of a program and of its loops |
//! | [`program`] | an expression for the bounded evaluator |
//! | [`check`](mod@check) | names and types that an expression uses, before it runs |
//! | [`evaluate`](mod@evaluate) | the bounded evaluator: every step, every copy and all memory is charged to a budget |
//! | `signs` | repeated signs, which the parser gets wrong |
//! | [`json`] | JSON as values of expressions |
//! | [`re2`] | regular expressions as the API server interprets them, also those outside of CEL |

pub mod check;
pub mod compile;
pub mod evaluate;
pub mod json;
pub mod patterns;
pub mod program;
pub mod re2;
mod signs;
pub mod stack;
pub mod tree;

pub use compile::{CompileError, brackets};
pub use evaluate::{EvaluationError, Meter, Names, evaluate};
pub use patterns::Patterns;
pub use program::{Program, ProgramError};
pub use stack::{StackError, on_large_stack};
pub use tree::{depth, loops};
