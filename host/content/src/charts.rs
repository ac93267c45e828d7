//! Charts in Helm repositories: the `index.yaml` of a web server, and the archives that it names.
//!
//! | module | contents |
//! |---|---|
//! | `index` | reads an index, and keeps the versions of each chart |
//! | `select` | the version that a source names |
//! | `fetch` | resolves and fetches charts |
//!
//! An index is untrusted, like an archive: its server may be anyone's. What it names is fetched with the rules for redirects.

mod fetch;
mod index;
mod select;

pub(crate) use self::index::{INDEX_BYTES, unpack};
pub use self::{
    fetch::{Charts, ResolvedChart},
    index::{HelmIndex, is_chart_name},
    select::{ChartError, ChartVersion},
};
