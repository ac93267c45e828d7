//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `cover` | which rules cover others, compared with trying every request |
//! | `delegation` | no object of ours makes Chandler act with permissions that its writer lacks |
//! | `merge` | merging and rendering neither add nor lose permissions |
//! | `release` | the permissions that whole releases require, and which of them are missing |

mod common;
mod cover;
mod delegation;
mod merge;
mod release;
