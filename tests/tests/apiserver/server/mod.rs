//! §3 F: discovery, built-in kinds and representations.

mod discovery;
mod leases;
mod representations;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [discovery::cases(), representations::cases(), leases::cases()].into_iter().flatten().collect()
}
