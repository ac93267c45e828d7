//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `apply` | server-side apply and ownership, case by case from Kubernetes' documentation |
//! | `properties` | the same over random configurations |

mod apply;
mod properties;
