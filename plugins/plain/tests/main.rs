//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `bundles` | whole bundles |
//! | `images` | images that the configuration replaces |
//! | `payloads` | release images of OpenShift |
//! | `releases` | manifests of an OpenShift release |
//! | `versions` | versions that the configuration replaces |
//! | `documentation` | `docs/plain.md` names every finding and every key of the configuration |

mod bundles;
mod documentation;
mod images;
mod payloads;
mod releases;
mod versions;
