//! §3.23: ValidatingAdmissionPolicies.

mod denials;
mod matching;
mod params;
mod requests;
mod rules;
mod validation;
mod variables;

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [denials::cases(), matching::cases(), params::cases(), requests::cases(), validation::cases(), variables::cases()]
        .into_iter()
        .flatten()
        .collect()
}
