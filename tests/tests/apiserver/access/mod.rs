//! §3.21: authentication and authorization.

mod escalation;
mod identity;
mod reviews;
mod rules;
mod tokens;
pub(crate) mod users;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [identity::cases(), rules::cases(), escalation::cases(), reviews::cases(), tokens::cases()]
        .into_iter()
        .flatten()
        .collect()
}
