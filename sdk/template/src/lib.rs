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
//! | `machine` | the state of an execution |

mod error;
mod function;
mod limits;
mod machine;
mod text;
mod value;

pub use error::{Cause, Error};
pub use function::{Body, Call, Function, FunctionError, Functions, Type};
pub use limits::{Limit, Limits, Meter};
pub use machine::Machine;
pub use text::Str;
pub use value::{Element, IntKind, List, Map, Object, Value};
