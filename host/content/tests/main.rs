//! The integration tests of this crate, in one binary.
//!
//! | module | tests |
//! |---|---|
//! | `archives` | tar archives that mean harm, and those that do not |
//! | `zips` | the same for zip archives |
//! | `bundles` | real bundles, into the cache, into a registry and back |
//! | `images` | images and components of registries |
//! | `network` | what a hostile registry can make this process send, ask and wait for |
//! | `downloads` | archives of HTTP servers |
//! | `helm_repositories` | charts of Helm repositories |
//! | `repositories` | git repositories over HTTP |
//! | `repositories_ssh` | git repositories over SSH |

mod archives;
mod bundles;
mod common;
mod downloads;
mod helm_repositories;
mod images;
mod network;
mod repositories;
mod repositories_ssh;
mod zips;
