//! §3 A: writes and versions.

mod failures;
mod generation;
mod idle;
mod options;
mod status;
mod validation;
mod versions;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [
        versions::cases(),
        idle::cases(),
        generation::cases(),
        status::cases(),
        options::cases(),
        validation::cases(),
        failures::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
