//! The reconciler of Catalogs: resolve, unpack, index and check what the source names, and only then put it into use.
//!
//! While newer content is broken, or its server is away, the index of earlier content stays in use, also across restarts.
//!
//! | module | contents | I/O |
//! |---|---|---|
//! | `reconciler` | the state of the reconciler, and one reconcile | yes |
//! | `poll` | what the source names now, with as few requests as possible | yes |
//! | `index` | builds the index of a catalog and checks it | disk |
//! | `olm` | uses the catalogs of OLM like Catalogs | yes |
//! | `states` | what is known about each Catalog between reconciles | no |
//! | `status` | derives the status | no |

mod index;
mod olm;
mod poll;
mod reconciler;
mod states;
mod status;

pub(crate) use self::{
    reconciler::{CatalogCacheError, Catalogs},
    states::{CatalogStates, KnownCatalog},
};
