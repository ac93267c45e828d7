//! The resolver: which bundles to install, or why none fit.
//!
//! It is pure: catalogs and facts in, a decision or an explanation out. It has no clock, no cluster and no client, and its limits
//! count work, so that the same question has the same answer everywhere.
//!
//! ```
//! use chandler_resolver::{Answer, MemoryCatalogs, Problem, resolve};
//! use serde_json::json;
//!
//! let catalogs = MemoryCatalogs::new().with("main", [
//!     json!({"schema": "olm.package", "name": "database", "defaultChannel": "stable"}),
//!     json!({"schema": "olm.channel", "package": "database", "name": "stable", "entries": [{"name": "database.v1.0.0"}]}),
//!     json!({"schema": "olm.bundle", "package": "database", "name": "database.v1.0.0", "image": "example.com/database:1",
//!            "properties": [{"type": "olm.package", "value": {"packageName": "database", "version": "1.0.0"}}]}),
//! ]);
//! let problem: Problem =
//!     serde_json::from_value(json!({"required": [{"package": "database"}], "catalogs": [{"name": "main"}]}))?;
//! let Answer::Decision(decision) = resolve(&problem, &catalogs)? else { panic!("it fits") };
//! assert_eq!(decision.members[0].version, "1.0.0");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`problem`] | a question as plain data |
//! | [`answer`] | a decision as plain data |
//! | [`explain`] | the explanation why nothing fits |
//! | [`error`](mod@error) | why there is neither |
//! | [`catalog`] | catalogs as the resolver reads them |
//! | [`version`] | versions with releases, and the ranges of users and catalogs |
//! | [`kind`], [`need`], [`platform`], [`selector`] | what bundles provide, require and tolerate; labels of catalogs |
//! | [`upgrade`] | the graph of upgrades |
//! | [`what_if`] | what a question with one change would be answered |
//! | [`deppy`] | what Deppy's solver gives |
//! | `question`, `universe`, `encode`, `choose`, `decide` | the steps of [`resolve`]: names, candidates, clauses, the best set, the decision |
//! | `held_back` | newer versions that were not chosen, and what holds them back |
//! | `home` | the catalogs that dependencies come from |
//! | `single` | the choice of OLM v1 for one package |
//! | `sat` | the solver, which nothing else names |
//! | `rules` | CEL rules of constraints |

pub mod answer;
mod arena;
pub mod catalog;
mod choose;
mod decide;
pub mod deppy;
mod encode;
pub mod error;
pub mod explain;
mod held_back;
mod home;
pub mod kind;
pub mod need;
pub mod platform;
pub mod problem;
mod question;
mod resolve;
mod rules;
mod sat;
pub mod selector;
mod single;
mod universe;
pub mod upgrade;
pub mod version;
pub mod what_if;

pub use answer::{Answer, Change, Decision, Edge, HeldBack, Member, Reason, Step};
pub use catalog::{Bundle, CatalogError, Catalogs, MemoryCatalogs, Package};
pub use error::{Exceeded, ResolveError};
pub use explain::{Explanation, Limit, Line};
pub use kind::Kind;
pub use problem::{
    Budget, Cluster, Dependencies, Excluded, Hold, Installed, Mode, Policy, Problem, Required, Source, Upgrades,
};
pub use resolve::{resolve, resolve_counted};
pub use selector::Selector;
