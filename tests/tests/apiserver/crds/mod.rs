//! §3 E: CustomResourceDefinitions.

mod completion;
mod lifecycle;
mod rules;
mod shape;
mod structural;
mod versions;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [lifecycle::cases(), structural::cases(), completion::cases(), shape::cases(), rules::cases(), versions::cases()]
        .into_iter()
        .flatten()
        .collect()
}
