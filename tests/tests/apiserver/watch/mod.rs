//! §3 C: lists and watches.

mod bookmarks;
mod paging;
mod selectors;
mod versions;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [versions::cases(), bookmarks::cases(), selectors::cases(), paging::cases()].into_iter().flatten().collect()
}
