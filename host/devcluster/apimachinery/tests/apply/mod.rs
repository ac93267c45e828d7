//! Tests of server-side apply.
//!
//! | module | tests |
//! |---|---|
//! | `server_side` | server-side apply and ownership, case by case from Kubernetes' documentation |
//! | `properties` | the same over random configurations |

mod properties;
mod server_side;
