//! Requests to the API server.

pub(crate) mod account;
pub(crate) mod answers;
pub(crate) mod changes;
pub(crate) mod cluster;
pub(crate) mod concurrent;
pub(crate) mod members;
pub(crate) mod recent;
pub(crate) mod recent_answers;
pub(crate) mod replace;
pub(crate) mod writes;
