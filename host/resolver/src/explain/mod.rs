//! Why nothing fits: the smallest contradiction, in words, and what would nearly do.
//!
//! | module | contents |
//! |---|---|
//! | [`line`](mod@line) | one condition of a contradiction |
//! | `misses` | what would nearly do, and what it lacks |

mod bundles;
pub mod line;
mod misses;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

pub use line::{CONSTRAINT, Limit, Line};

use crate::{
    encode::{Cause, Encoding},
    error::ResolveError,
    sat::Lit,
    universe::Universe,
};

/// The longest message, in characters.
const MESSAGE: usize = 2_000;

/// Why nothing fits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Everything in one text of bounded length.
    pub message: String,
    /// Conditions that contradict each other. Without any one of them they would not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<Line>,
    /// Near misses: candidates that almost meet the request, and what they lack.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near_misses: Vec<String>,
}

impl Explanation {
    pub(crate) fn of_message(message: String) -> Self {
        Self { message, ..Self::default() }
    }
}

/// Explains why nothing fits. `None` if something does.
pub(crate) fn explain(universe: &Universe<'_>) -> Result<Option<Explanation>, ResolveError> {
    let mut encoding = Encoding::of(universe, true)?;
    let causes: BTreeMap<Lit, Cause> =
        encoding.causes.iter().map(|(cause, literal)| (*literal, cause.clone())).collect();
    // Causes are in the order in which people look at them; those at the end are left out first.
    let assumptions: Vec<Lit> = encoding.causes.values().copied().collect();
    if encoding.sat.solve(&assumptions)? {
        return Ok(None);
    }
    let core = encoding.sat.minimal_core(&assumptions)?;
    let mut causes: Vec<&Cause> = core.iter().filter_map(|literal| causes.get(literal)).collect();
    causes.sort();
    let lines: Vec<Line> = causes.iter().map(|cause| line::line(universe, cause)).collect();
    let near_misses = misses::near_misses(universe, &causes);
    Ok(Some(Explanation { message: message(&lines, &near_misses), lines, near_misses }))
}

/// The lines as sentences.
fn message(lines: &[Line], near_misses: &[String]) -> String {
    let mut seen = BTreeSet::new();
    let sentences: Vec<String> = lines.iter().map(ToString::to_string).chain(near_misses.iter().cloned()).collect();
    let sentences: Vec<&str> = sentences.iter().map(String::as_str).filter(|text| seen.insert(*text)).collect();
    bundles::bounded(&sentences.join("; "), MESSAGE)
}
