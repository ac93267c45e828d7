//! The support library of the cases.
//!
//! | module | holds |
//! |---|---|
//! | [`case`] | a case, its marks, and how it becomes a test |
//! | [`server`] | the server of the run, and its capabilities |
//! | [`scope`] | the isolated scope of a case: a namespace, API groups, clean-up |
//! | [`http`] | plain HTTP requests as some user, and their responses |
//! | [`collection`] | the verbs on a collection |
//! | [`events`] | the events of a watch |
//! | [`objects`] | objects and CRDs to work with |
//! | [`kubectl`] | the real kubectl |

pub(crate) mod case;
pub(crate) mod collection;
pub(crate) mod events;
pub(crate) mod http;
pub(crate) mod kubectl;
pub(crate) mod objects;
pub(crate) mod scope;
pub(crate) mod server;

pub(crate) use case::{Case, cases};
pub(crate) use collection::Collection;
pub(crate) use http::{APPLY, Answer, Http, JSON_PATCH, MERGE, STRATEGIC};
pub(crate) use scope::Scope;
