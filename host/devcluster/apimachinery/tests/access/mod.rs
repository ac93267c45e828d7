//! Tests of authorization and impersonation.
//!
//! | module | tests |
//! |---|---|
//! | `decisions` | authorization, escalation and the bootstrap policy, over whole policies |
//! | `impersonation` | the permissions that each mode needs, and the error messages |

mod common;
mod decisions;
mod impersonation;
