//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `layers` | the folders of this crate depend on each other in one direction only |
//! | `rollout` | releases onto the API server of `chandler-devcluster` |

mod layers;
mod rollout;
