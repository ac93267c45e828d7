//! Health of Kubernetes objects.
//!
//! Pure: live objects come in as JSON values, health goes out. There is no client, and the clock is an argument.
//!
//! | module | contents |
//! |---|---|
//! | [`health`] | the result: a state, a message, a hint |
//! | [`assess`](mod@assess) | the health of an object by the rules of its kind |
//! | `workloads`, `resources`, `conditions` | the rules |
//! | [`mod@cause`] | why an object is unhealthy: the cause in its Pods and other objects below it |
//! | [`dependencies`] | the state of other objects that health depends on |
//! | [`needs`] | the Services that the API server calls because of an object, and the stage from which they must have endpoints |
//! | [`webhook_dependency`] | the writes that must wait for such a Service |
//! | [`probe`] | the health of an object by rules in CEL |
//! | [`mod@debounce`] | when reported health follows observed health |
//! | [`reader`] | reads fields that may be missing |

pub mod assess;
pub mod cause;
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
pub use debounce::{Debounce, debounce};
pub use dependencies::{Dependencies, ServiceName};
pub use health::{Health, State};
pub use probe::{Probes, Rule, RuleError};
pub use reader::{Reader, terminating};

#[cfg(test)]
mod tests;
