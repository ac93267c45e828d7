//! What a request says besides its path and body, decoded.
//!
//! | module | holds |
//! |---|---|
//! | [`query`] | query parameters, the options of writes |
//! | [`negotiate`] | which representation the client wants |

pub mod negotiate;
pub mod query;
