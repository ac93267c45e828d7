//! The other patch formats.

mod json;
mod strategic;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [strategic::cases(), json::cases()].into_iter().flatten().collect()
}
