//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `alternatives` | what would be chosen instead |
//! | `cluster_operators` | random histories of PlatformOperators, and the judgement of the cluster-version operator |
//! | `manifests` | the members of a set as manifests |
//! | `status` | the status of a Resolution |

mod alternatives;
mod cluster_operators;
mod manifests;
mod status;
