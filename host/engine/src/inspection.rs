//! What a component says about itself, for those who build or choose one. Nothing is compiled.

use serde::Serialize;

use crate::{
    Facts, LoadError, MissingImport,
    facts::{self, Outline},
    imports,
};

/// What the bytes of a component say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// What it declares, or what follows from its exports and its metadata.
    pub facts: Facts,
    /// Whether it has the custom section `chandler:provisioner`. Without it, the component declares no format.
    pub declares_facts: bool,
    /// The interfaces that it imports.
    pub imports: Vec<String>,
    /// The imports that this host does not provide. Functions that are missing from a known interface show when the component is loaded.
    pub missing: Vec<MissingImport>,
    /// The languages and the tools that made it, as far as they say so.
    pub tools: Vec<Tool>,
}

/// A language or a tool that took part in making a component, from its custom section `producers`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Tool {
    /// `language`, `processed-by` or `sdk`.
    pub role: String,
    /// Its name.
    pub name: String,
    /// Its version; may be empty.
    pub version: String,
}

impl Inspection {
    /// Inspects a component.
    ///
    /// # Errors
    /// The bytes are not a component of a version of the contract that this host supports.
    pub fn of(wasm: &[u8]) -> Result<Self, LoadError> {
        let Outline { facts, declares_facts, imports, tools } = facts::outline(wasm)?;
        let missing = imports::missing_interfaces(&imports);
        Ok(Self { facts, declares_facts, imports, missing, tools: tools.into_iter().collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPORT: &str = r#"(instance $i) (export "chandler:provisioner/provisioner@0.1.0" (instance $i))"#;

    /// A custom section `producers` with one field and one value.
    fn producers(field: &str, name: &str, version: &str) -> String {
        let text = |text: &str| format!("\\{:02x}{text}", text.len());
        format!(r#"(@custom "producers" "\01{}\01{}{}")"#, text(field), text(name), text(version))
    }

    fn inspect(parts: &str) -> Inspection {
        Inspection::of(&wat::parse_str(format!("(component {parts} {EXPORT})")).unwrap()).unwrap()
    }

    #[test]
    fn imports_and_tools_are_listed() {
        let module = format!("(core module {})", producers("language", "Rust", ""));
        let import = r#"(import "wasi:http/types@0.2.6" (instance))"#;
        let found =
            inspect(&format!("{module} {module} {import} {}", producers("processed-by", "wit-component", "1.2")));
        assert_eq!(found.imports, ["wasi:http/types@0.2.6"]);
        assert_eq!(found.missing.len(), 1);
        assert!(!found.declares_facts && found.facts.formats.is_empty());
        let tools: Vec<String> =
            found.tools.iter().map(|Tool { role, name, version }| format!("{role} {name} {version}")).collect();
        assert_eq!(tools, ["language Rust ", "processed-by wit-component 1.2"]);
    }

    #[test]
    fn what_tools_say_about_themselves_is_bounded_and_printable() {
        let many: String = (0..200).map(|at| producers("sdk", &format!("tool{at}"), "")).collect();
        assert_eq!(inspect(&many).tools.len(), facts::TOOLS);
        assert!(inspect(&producers("sdk", "a\\1b[31m", "")).tools.is_empty());
        assert!(inspect(r#"(@custom "producers" "\ff\ff")"#).tools.is_empty());
    }
}
