//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `rules` | every rule: what it finds, what it does not find, and its messages |
//! | `objects` | custom resources in the cluster against new schemas |
//! | `properties` | what holds for every CRD |
//! | `vectors` | upgrades of CRDs beside the checkout, with the reference's result for each |

mod objects;
mod properties;
mod rules;
mod vectors;
