//! Go's text/template, with limits: templates are untrusted.
//!
//! The crate `gotmpl` was looked at first, and not used: its maps cannot be changed by functions (Sprig's `set` and `merge` do), its values do not
//! know which of Go's types they have (`[]string` or `[]interface {}`, the two forms of nil), its functions have no signatures, so that errors
//! lack Go's texts and positions, and can neither execute templates (`include`, `tpl`) nor count their work.
//!
//! | module | holds |
//! |---|---|
//! | `value`, `text` | values with Go's types |
//! | `function` | functions, and what they may reach |
//! | `limits` | what an execution may cost |
//! | `error` | errors, with Go's texts |
//! | `lex`, `parse`, `node`, `literal` | from text to a syntax tree |
//! | `execute`, `builtin`, `escape` | execution, and the functions of text/template |
//! | `format`, `float` | Go's package fmt |
//! | `machine` | a set of templates, and the state of its execution |

mod builtin;
mod error;
mod escape;
mod execute;
mod float;
mod format;
mod function;
mod lex;
mod limits;
mod literal;
mod machine;
mod node;
mod parse;
mod text;
mod value;

pub use error::{Cause, Error};
pub use float::{fixed as fixed_float, general as general_float};
pub use format::{sprint, sprintf, sprintln};
pub use function::{Body, Call, Function, FunctionError, Functions, Returned, Type};
pub use limits::{Limit, Limits, Meter};
pub use literal::{float as parse_float, integer as parse_integer, quote, unquote, unsigned as parse_unsigned};
pub use machine::Machine;
pub use text::Str;
pub use value::{Element, IntKind, List, Map, Object, Value};
