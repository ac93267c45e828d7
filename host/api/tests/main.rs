//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `crds` | the contents of the CRDs, compared with rukpak's and OpenShift's, and `deploy/crds.yaml` |
//! | `dependencies` | a program that only reads BundleDeployments compiles no expression engine |
//! | `rules` | what the CEL rules accept and refuse |

mod crds;
mod dependencies;
mod rules;
