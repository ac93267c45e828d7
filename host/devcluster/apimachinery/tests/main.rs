//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `access` | authorization, escalation, the bootstrap policy and impersonation |
//! | `apply` | server-side apply and ownership |

mod access;
mod apply;
