//! Decodes the parts of a request besides its path and body.
//!
//! | module | holds |
//! |---|---|
//! | [`query`] | query parameters, the options of writes |
//! | [`negotiate`] | which representation the client wants |

pub mod negotiate;
pub mod query;
