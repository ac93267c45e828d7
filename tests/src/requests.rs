//! What the controller costs the API server: its requests by verb and resource while many bundles are installed, upgraded,
//! reconciled without changes, and deleted.
//!
//! | module | holds |
//! |---|---|
//! | [`request`] | the verb and the resource of a request |
//! | [`recorder`] | a client layer that counts requests and connections |
//! | [`reconciles`] | counts reconciles by what they wrote |
//! | [`processor`] | processor time of the controller's threads |
//! | [`counted_controller`] | a controller whose requests are counted |
//! | [`sample`] | the bundles that are installed, and the accounts that install them |
//! | [`workload`] | the steps |
//! | [`floor`] | the same objects without a controller |
//! | [`table`] | prints the counts |
//! | [`expected`] | compares counts with recorded ones |
//!
//! The client of the controller counts, so this works on every API server, with TLS and HTTP/2. A request that the client of kube
//! repeats after an answer 429 or 503 counts once.

pub mod counted_controller;
pub mod expected;
pub mod floor;
pub mod processor;
pub mod reconciles;
pub mod recorder;
pub mod request;
pub mod sample;
pub mod table;
pub mod workload;

pub use recorder::Counts;
pub use workload::{Step, Workload, measure};
