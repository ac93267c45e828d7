//! §3 D: deletion.

mod finalizers;
mod namespaces;
mod owners;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [finalizers::cases(), owners::cases(), namespaces::cases()].into_iter().flatten().collect()
}
