//! What a component declares about itself, in a custom section.

use serde::{Deserialize, Serialize};
use wasm_encoder::{CustomSection, RawSection, Section as _};
use wasmparser::{Parser, Payload};

/// The name of the custom section. Its content is JSON.
pub const SECTION: &str = "chandler:provisioner";

/// What a component declares. Hosts read it before they compile anything. Texts have at most 256 bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of the contract that it exports, such as `0.1.0`.
    pub contract: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// The bundle formats that it detects. A component without formats is used only by its class' name.
    #[serde(default)]
    pub formats: Vec<String>,
    /// The functions of the contract that it can do without, as `interface#function`: hosts that lack one load it nevertheless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional: Vec<String>,
}

/// Facts cannot be written to a component.
#[derive(Debug, thiserror::Error)]
pub enum AnnotateError {
    /// The bytes are not WebAssembly.
    #[error("not a valid component: {0}")]
    Malformed(#[from] wasmparser::BinaryReaderError),
    /// A module in the component declares them.
    #[error("the SDK that it was built with wrote its facts: change FACTS in the source of the provisioner")]
    OfTheSdk,
    /// The facts cannot be encoded.
    #[error("the facts cannot be encoded: {0}")]
    Encoding(#[from] serde_json::Error),
}

/// A component that declares these facts, instead of those that it declared before.
///
/// # Errors
/// The bytes are malformed, or a module in the component declares facts, as the Rust SDK writes them.
pub fn annotated(component: &[u8], facts: &Facts) -> Result<Vec<u8>, AnnotateError> {
    let mut annotated = Vec::with_capacity(component.len() + 256);
    let mut depth = 0_usize;
    for payload in Parser::new(0).parse_all(component) {
        let payload = payload?;
        let is_facts = matches!(&payload, Payload::CustomSection(custom) if custom.name() == SECTION);
        if is_facts && depth > 0 {
            return Err(AnnotateError::OfTheSdk);
        }
        if depth == 0 && !is_facts {
            match &payload {
                Payload::Version { range, .. } => annotated.extend(bytes(component, range.clone())),
                _ => {
                    if let Some((id, range)) = payload.as_section() {
                        RawSection { id, data: bytes(component, range) }.append_to(&mut annotated);
                    }
                }
            }
        }
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => depth += 1,
            Payload::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let data = serde_json::to_vec(facts)?;
    CustomSection { name: SECTION.into(), data: data.into() }.append_to(&mut annotated);
    Ok(annotated)
}

/// A range that the parser gave.
fn bytes(component: &[u8], range: std::ops::Range<usize>) -> &[u8] {
    component.get(range).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(name: &str) -> Facts {
        let formats = vec!["sail+v0".to_owned()];
        Facts {
            contract: "0.1.0".to_owned(),
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            formats,
            optional: Vec::new(),
        }
    }

    /// What a component declares, and the number of its sections.
    fn read(component: &[u8]) -> (Vec<Facts>, usize) {
        let payloads: Vec<Payload<'_>> = Parser::new(0).parse_all(component).map(Result::unwrap).collect();
        let declared = payloads.iter().filter_map(|payload| match payload {
            Payload::CustomSection(custom) if custom.name() == SECTION => serde_json::from_slice(custom.data()).ok(),
            _ => None,
        });
        (declared.collect(), payloads.len())
    }

    #[test]
    fn facts_are_added_and_replaced_and_nothing_else_changes() {
        let text =
            r#"(component $sail (core module (func (export "f"))) (@custom "other" "kept") (component (core module)))"#;
        let component = wat::parse_str(text).unwrap();
        let first = annotated(&component, &facts("a")).unwrap();
        assert!(first.starts_with(&component), "the section comes last");
        let second = annotated(&first, &facts("b")).unwrap();
        assert_eq!(read(&second), (vec![facts("b")], read(&component).1 + 1));
        assert_eq!(second.len(), first.len());
        wasmparser::validate(&second).unwrap();
    }

    #[test]
    fn facts_of_the_sdk_are_not_replaced() {
        let text = r#"(component (core module (@custom "chandler:provisioner" "{}")))"#;
        let refused = annotated(&wat::parse_str(text).unwrap(), &facts("a"));
        assert!(matches!(refused, Err(AnnotateError::OfTheSdk)));
        assert!(matches!(annotated(b"\0asm", &facts("a")), Err(AnnotateError::Malformed(_))));
    }
}
