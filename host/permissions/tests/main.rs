//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `cover` | which rules cover others, compared with trying every request |
//! | `merge` | merging and rendering neither add nor lose permissions |
//! | `release` | the permissions that whole releases require, and which of them are missing |

mod common;
mod cover;
mod merge;
mod release;
