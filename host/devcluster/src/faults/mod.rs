//! Fault injection: failures that clients must survive, on request of a test or `chandler dev --fault`.
//!
//! A [`Fault`] defines what happens ([`Effect`]), to which requests ([`Matcher`]), and how often. The cluster keeps the active ones
//! in [`Faults`], which decides for each request which faults affect it. The cluster's own controllers work on the store and are never
//! affected; the workload simulation is affected only by faults that select it.
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
//! | [`effect`] | the possible effects |
//! | [`fault`] | an effect with its conditions, built step by step |
//! | [`matching`] | requests, and which of them a fault matches |
//! | [`text`] | the text format |
//! | [`registry`] | the active faults, and which of them affect a request |
//! | [`watch`] | the effects on the events of a watch |

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
