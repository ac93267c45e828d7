//! Watched objects in memory, so that reads make no request.
//!
//! An informer is a watch and the objects that it delivered. There is one for each kind, with the rights of the controller; where
//! the controller may not watch a kind, there is one for each kind, namespace and ServiceAccount.
//!
//! The objects are consistent with the writes of the process: the answer to a write is stored before the caller continues, an
//! older event of the watch never replaces it, and the event of the write itself triggers no reconcile. Where the outcome of a
//! write is unknown, or an object does not fit in memory, a [`Members`] names the object, and the caller reads it.
//!
//! | module | contents | effects |
//! |---|---|---|
//! | `body` | the compressed JSON of an object | none |
//! | `claims` | what shows whom an object belongs to | none |
//! | `store` | the objects of one informer: events, writes, lists | none |
//! | `observed` | an object as the watch delivers it | none |
//! | `rights` | what the controller may watch | requests |
//! | `informer` | one watch, which fills a store | requests |
//! | [`informers`] | all informers, and reads and writes through them | requests |

mod body;
mod claims;
mod informer;
pub mod informers;
mod observed;
mod rights;
mod store;

pub use informers::{Informers, Options, Reader, Writing};
pub use observed::Labels;
pub use store::{Id, Members, Outcome, Wanted};
