//! Failures on demand: what a client has to survive, when a test or `chandler dev --fault` asks for it.
//!
//! A [`Fault`] says what happens ([`Effect`]), to which requests ([`Matcher`]), and how often. The cluster keeps those that wait
//! in [`Faults`], which decides for each request what strikes it. The cluster's own controllers work on the store and are never
//! struck; the simulation of workloads is struck only by faults that ask for it.
//!
//! ```
//! use chandler_devcluster::{Effect, Fault, faults::Verb};
//!
//! let typed = Fault::new(Effect::Conflict).verb(Verb::Patch).resource("deployments.apps").times(3);
//! let written: Fault = "conflict,verb=patch,resource=deployments.apps,times=3".parse().unwrap();
//! assert_eq!(typed, written);
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`effect`] | what can happen |
//! | [`fault`] | an effect with its conditions, built step by step |
//! | [`matching`] | requests, and which of them are meant |
//! | [`text`] | the written form |
//! | [`registry`] | the faults that wait, and what strikes a request |
//! | [`watch`] | what happens to the events of a watch |

pub mod effect;
pub mod fault;
pub mod matching;
pub mod registry;
pub mod text;
pub mod watch;

pub use self::{
    effect::{Effect, When},
    fault::Fault,
    matching::{Exposure, Matcher, Occasion, Verb},
    registry::{FaultId, Faults, Outcome, Report, Strike},
    text::FaultError,
};
