//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `manifests` | the members of a set as manifests |
//! | `status` | the status of a Resolution |

mod manifests;
mod status;
