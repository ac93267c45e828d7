//! Hostile and large bundles: no crash, and findings that users can act on.

use std::sync::Arc;

use chandler_core::Content;
use chandler_engine::{CallError, Limits, Provisioner};

use super::{Check, careless, positions};
use crate::{
    Case,
    bundles::{Files, Variant},
};

pub(super) async fn check(provisioner: &Provisioner, cases: &[Case], limits: &Limits) -> [Check; 4] {
    let mut contents = Check::new("hostile-contents", "renders or refuses files with any content, without a crash");
    let mut names = Check::new("hostile-names", "renders or refuses files with any name, without a crash");
    let mut large = Check::new(
        "large-bundles",
        "renders or refuses many files, deep directories and a file of 64 MiB within the limits",
    );
    let mut findings = Check::new("findings", "refuses invalid content with a code, a message and a position");
    let empty = Case {
        name: "an empty bundle".into(),
        content: Arc::new(Files::default().content()),
        request: chandler_core::Request { config: serde_json::Map::new(), target: chandler_core::Target::default() },
    };
    let tried: Vec<&Case> = if cases.is_empty() { vec![&empty] } else { cases.iter().collect() };
    for case in tried {
        let files = Files::of(case.content.as_ref());
        for (check, variants) in [(&mut contents, files.hostile_contents()), (&mut names, files.hostile_names())] {
            for variant in variants {
                let outcome = tried_with(provisioner, case, &variant, limits).await;
                check.record(outcome.problem);
                if outcome.is_refused {
                    findings.record(outcome.finding);
                }
            }
        }
    }
    // One is enough: these bundles are large.
    if let Some(case) = cases.first() {
        for variant in Files::of(case.content.as_ref()).large() {
            large.record(tried_with(provisioner, case, &variant, limits).await.problem);
        }
    }
    [contents, names, large, findings]
}

/// What a variant led to.
struct Outcome {
    /// What is wrong with the calls.
    problem: Option<String>,
    /// Whether the content was refused.
    is_refused: bool,
    /// What is wrong with the findings of the refusal.
    finding: Option<String>,
}

async fn tried_with(provisioner: &Provisioner, case: &Case, variant: &Variant, limits: &Limits) -> Outcome {
    let named = |problem: String| format!("{}, where {}: {problem}", case.name, variant.what);
    let content: Arc<dyn Content> = Arc::new(variant.files.content());
    if let Err(error) = provisioner.detect(Arc::clone(&content), limits).await {
        let problem = Some(named(format!("detect failed: {error}")));
        return Outcome { problem, is_refused: false, finding: None };
    }
    let result = provisioner.provision(&case.request, content, limits).await;
    let refused = match &result {
        Err(CallError::InvalidContent(found) | CallError::UnsupportedContent(found)) => Some(found),
        _ => None,
    };
    Outcome {
        problem: result.as_ref().err().and_then(careless).map(named),
        is_refused: refused.is_some(),
        finding: refused.and_then(|found| positions::problem(variant, found)).map(named),
    }
}
