//! Charts of Helm, rendered without a sandbox: files, archives of charts within them, templates, values and schemas.

use chandler_go_template::{Limits, Map};
use chandler_helm::{
    chart::{File, values},
    functions::Environment,
    pipeline::{self, Request},
    render::{ApiVersions, Capabilities, Release},
};

use crate::{archive::Archive, memory};

/// What templates may cost here: less than in the sandbox, so that a fuzzer tries many.
const LIMITS: Limits = Limits { steps: 200_000, bytes: 16 << 20, depth: 100 };
/// The memory that a chart may take besides: tables, and copies of each file and value.
const FIXED: usize = 256 << 20;
const PER_BYTE: usize = 4000;

/// Asserts that a chart gives manifests, or an error with a text; always the same, in bounded memory.
pub(crate) fn holds(input: &[u8]) {
    let archive = Archive::read(input);
    let once = memory::bounded(input, FIXED, PER_BYTE, || rendered(&archive));
    if let Err(message) = &once {
        assert!(!message.trim().is_empty(), "an error without a text");
    }
    assert_eq!(once, rendered(&archive), "another result for the same input");
}

fn rendered(archive: &Archive) -> Result<String, String> {
    let values = match archive.request.config.get("values") {
        None => Map::new(),
        Some(given) => values::read(&given.to_string())?,
    };
    let files = archive.files.iter().map(|(path, bytes)| File::new(path.clone(), bytes.clone()));
    let rendered = pipeline::render(Request {
        files: files.collect(),
        values: vec![values],
        release: Release { name: "web".to_owned(), namespace: "shop".to_owned(), revision: 1, upgrade: false },
        capabilities: Capabilities {
            kubernetes: "v1.33.0".to_owned(),
            api_versions: ApiVersions::new(vec!["v1".to_owned(), "apps/v1".to_owned()]),
        },
        environment: Environment::default(),
        limits: LIMITS,
    });
    rendered.map(|rendered| format!("{:?}", rendered.documents)).map_err(|failure| failure.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_is_rendered_to_the_end() {
        let text = rendered(&Archive::read(crate::seeds::CHART)).unwrap();
        for part in ["greeting: hello", "name: web-sub", "helm.sh/hook", "replicas: 3"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
