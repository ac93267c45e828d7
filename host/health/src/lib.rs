//! Whether objects of a cluster work.
//!
//! Pure: live objects come in as JSON values, verdicts go out. No client, and the clock is an argument.
//!
//! | module | holds |
//! |---|---|
//! | [`health`] | the verdict: a state, a message, what would help |
//! | [`assess`](mod@assess) | the verdict on an object by the rules of its kind |
//! | `workloads`, `resources`, `conditions` | the rules |
//! | [`dependencies`] | what the verdict depends on beside the object |
//! | [`needs`] | which Services the API server calls because of an object, and from which stage on they must answer |
//! | [`webhook_dependency`] | which writes have to wait for such a Service |
//! | [`probe`] | the verdict on an object by rules in CEL |
//! | [`debounce`] | when what is reported follows what is found |
//! | [`reader`] | reading fields that may be missing |

pub mod assess;
mod conditions;
pub mod debounce;
pub mod dependencies;
pub mod health;
pub mod needs;
pub mod probe;
pub mod reader;
mod resources;
pub mod webhook_dependency;
mod workloads;

pub use assess::assess;
pub use debounce::{Steadiness, steady};
pub use dependencies::{Dependencies, ServiceName};
pub use health::{Health, State};
pub use probe::{Probes, Rule, RuleError};
pub use reader::{Reader, terminating};

#[cfg(test)]
mod tests;
