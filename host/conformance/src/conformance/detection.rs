//! Detection: correct, and cheap.

use std::sync::Arc;

use chandler_core::{Content, MemoryContent};
use chandler_engine::{Limits, Provisioner};

use super::{Check, with_ballast};
use crate::{Case, observed::Observed};

/// What detection may read of a bundle, in bytes, however large the bundle is.
const CHEAP_BYTES: u64 = 4 << 20;

pub(super) async fn check(provisioner: &Provisioner, cases: &[Case], limits: &Limits) -> [Check; 3] {
    let mut correct = Check::new("detection", "detects its bundles, as one of the formats that it declares");
    let mut cheap = Check::new("detection-cost", "reads names and a few small files to detect a format: at most 4 MiB");
    for case in cases {
        correct.record(wrong_format(provisioner, case, limits).await);
        let observed = Observed::new(Arc::new(with_ballast(case).content()));
        let detected = provisioner.detect(observed.clone(), limits).await;
        let read = observed.bytes();
        cheap.record(match detected {
            Err(error) => Some(format!("{} with 2000 further files: {error}", case.name)),
            Ok(_) if read > CHEAP_BYTES => {
                Some(format!("{} with 2000 further files: detection read {read} bytes", case.name))
            }
            Ok(_) => None,
        });
    }
    let mut foreign =
        Check::new("detection-of-others", "does not detect bundles of other formats, and does not fail on them");
    for (what, content) in others() {
        foreign.record(match provisioner.detect(content, limits).await {
            Ok(None) => None,
            Ok(Some(format)) => Some(format!("{what}: detected as {format}")),
            Err(error) => Some(format!("{what}: {error}")),
        });
    }
    [correct, cheap, foreign]
}

async fn wrong_format(provisioner: &Provisioner, case: &Case, limits: &Limits) -> Option<String> {
    let formats = &provisioner.facts().formats;
    match provisioner.detect(case.content.clone(), limits).await {
        Ok(Some(format)) if formats.contains(&format) => None,
        Ok(Some(format)) => Some(format!("{}: detected as {format}, which the component does not declare", case.name)),
        // Its BundleDeployments must name the class.
        Ok(None) if formats.is_empty() => None,
        Ok(None) => Some(format!("{}: not detected", case.name)),
        Err(error) => Some(format!("{}: {error}", case.name)),
    }
}

/// Bundles that belong to no format.
fn others() -> [(&'static str, Arc<dyn Content>); 3] {
    [
        ("an empty bundle", Arc::new(MemoryContent::new::<&str, &str>([]))),
        (
            "a bundle with a LICENSE and a picture only",
            Arc::new(MemoryContent::new([("LICENSE", "text"), ("a/b.png", "\u{0}")])),
        ),
        (
            "a bundle with source code only",
            Arc::new(MemoryContent::new([("src/main.rs", "fn main() {}\n"), ("Cargo.lock", "version = 4\n")])),
        ),
    ]
}
