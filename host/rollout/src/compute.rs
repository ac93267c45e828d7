//! Decisions about large objects, on threads of their own and within bounds.

pub(crate) mod cpu;
pub(crate) mod health;
pub(crate) mod situations;
