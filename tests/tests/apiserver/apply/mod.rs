//! §3 B: server-side apply.

mod built_in;
mod entries;
mod lists;
mod migration;
mod ownership;
mod requests;
mod versions;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [
        ownership::cases(),
        entries::cases(),
        lists::cases(),
        built_in::cases(),
        requests::cases(),
        migration::cases(),
        versions::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
