//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `bundles` | the plain+v0 and the registry+v1 bundle have the printed objects, or name what they lack |
//! | `chart` | the Helm chart makes the printed objects, with and without Helm |
//! | `deploy` | the files of `deploy/` and the kustomization are the printed objects |
//! | `monitoring` | alerts and the dashboard |

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "test helpers may panic, too")]

mod bundles;
mod chart;
mod deploy;
mod monitoring;
