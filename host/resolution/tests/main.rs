//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `alternatives` | what would be chosen instead |
//! | `manifests` | the members of a set as manifests |
//! | `status` | the status of a Resolution |

mod alternatives;
mod manifests;
mod status;
