//! The metadata of a component, read from its bytes before anything is compiled.

use std::collections::BTreeSet;

use chandler_core::text::is_deceptive;
use serde::{Deserialize, Serialize};
use wasmparser::{ComponentName, CustomSectionReader, Encoding, KnownCustom, Parser, Payload};

use crate::{
    LoadError,
    contract::{self, PACKAGE},
    inspection::Tool,
    text::sanitize,
};

/// The name of the custom section with the facts of a component, as JSON.
pub const SECTION: &str = PACKAGE;

/// The magic bytes of every module and component.
const MAGIC: &[u8] = b"\0asm";

/// The largest custom section that is accepted.
const SECTION_BYTES: usize = 64 << 10;

/// The longest text in the custom section, in bytes.
const TEXT_BYTES: usize = 256;

/// The most names that a component may import or export at its top level.
const NAMES: usize = 1000;

/// The most languages and tools that are listed.
pub(crate) const TOOLS: usize = 64;

/// The deepest nesting of modules and components.
const DEPTH: usize = 16;

/// The metadata that a component declares in the custom section `chandler:provisioner`.
///
/// Tools that convert a module to a component leave the section in the module, so both are searched. For a component
/// without the section, the version of the contract comes from its exports, and name and version come from the sections
/// that `wasm-tools metadata add --name NAME --version VERSION` writes, which works for components in any language.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// The version of the contract that the component is built against.
    pub contract: String,
    /// Its name; empty if it declares none.
    #[serde(default)]
    pub name: String,
    /// Its version; empty if it declares none.
    #[serde(default)]
    pub version: String,
    /// The formats that the component can detect.
    #[serde(default)]
    pub formats: Vec<String>,
    /// The host capabilities that the component requires.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// The functions of the contract that the component can do without, as `interface#function`. On a host that lacks one, a call
    /// of it traps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub optional: Vec<String>,
}

impl Facts {
    /// The metadata of a component, without compiling it.
    ///
    /// # Errors
    /// The bytes are not a component of a version of the contract that this host supports.
    pub fn of(wasm: &[u8]) -> Result<Self, LoadError> {
        outline(wasm).map(|outline| outline.facts)
    }
}

/// What can be read from the bytes of a component without compiling them.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    pub(crate) facts: Facts,
    /// Whether it has the custom section of the contract.
    pub(crate) declares_facts: bool,
    /// The names of its imports.
    pub(crate) imports: Vec<String>,
    /// The languages and the tools that made it.
    pub(crate) tools: BTreeSet<Tool>,
}

/// Reads the outline and checks the version of the contract.
pub(crate) fn outline(wasm: &[u8]) -> Result<Outline, LoadError> {
    if !wasm.starts_with(MAGIC) {
        return Err(LoadError::NotAComponent("the file does not start with the WebAssembly magic bytes".into()));
    }
    let mut scan = Scan::default();
    for payload in Parser::new(0).parse_all(wasm) {
        scan.payload(payload.map_err(malformed)?)?;
    }
    scan.finish()
}

fn malformed(error: wasmparser::BinaryReaderError) -> LoadError {
    LoadError::NotAComponent(sanitize(error.to_string(), 512))
}

/// The parts of a component that were parsed so far.
#[derive(Debug, Default)]
struct Scan {
    /// The custom section of the contract.
    section: Option<Facts>,
    metadata: Metadata,
    tools: BTreeSet<Tool>,
    imports: Vec<String>,
    exports: Vec<String>,
    /// The number of modules and components that are open.
    depth: usize,
}

impl Scan {
    fn payload(&mut self, payload: Payload<'_>) -> Result<(), LoadError> {
        match payload {
            Payload::Version { encoding: Encoding::Module, .. } if self.depth == 0 => {
                let text = "it is a core module; `chandler plugin build` makes a component of it";
                return Err(LoadError::NotAComponent(text.into()));
            }
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                self.depth += 1;
                if self.depth > DEPTH {
                    let text = format!("components are nested more than {DEPTH} levels deep");
                    return Err(LoadError::NotAComponent(text));
                }
            }
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if self.depth == 0 => {
                for import in section {
                    push(&mut self.imports, import.map_err(malformed)?.name.name)?;
                }
            }
            Payload::ComponentExportSection(section) if self.depth == 0 => {
                for export in section {
                    push(&mut self.exports, export.map_err(malformed)?.name.name)?;
                }
            }
            Payload::CustomSection(custom) if custom.name() == SECTION => {
                let facts = parse(custom.data())?;
                if self.section.as_ref().is_some_and(|section| *section != facts) {
                    return Err(LoadError::Facts("it occurs twice with different content".into()));
                }
                self.section = Some(facts);
            }
            Payload::CustomSection(custom) => {
                read_tools(&custom, &mut self.tools);
                if self.depth == 0 {
                    self.metadata.read(&custom);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Outline, LoadError> {
        let exported = exported_contract(&self.exports)?;
        let declares_facts = self.section.is_some();
        let facts = self.section.unwrap_or_else(|| self.metadata.facts(exported));
        if !contract::supports(&facts.contract) {
            return Err(unsupported(&facts.contract));
        }
        if facts.contract != exported {
            let problem = format!(
                "it declares version {:?} of the contract, but the component exports version {exported:?}",
                facts.contract
            );
            return Err(LoadError::Facts(problem));
        }
        if !facts.capabilities.is_empty() {
            return Err(LoadError::MissingCapabilities(facts.capabilities));
        }
        Ok(Outline { facts, declares_facts, imports: self.imports, tools: self.tools })
    }
}

/// Name and version from the custom sections that WebAssembly tools write by convention.
#[derive(Debug, Default)]
struct Metadata {
    name: Option<String>,
    version: Option<String>,
}

impl Metadata {
    /// Reads a custom section of the component itself. Malformed sections are ignored: they are not part of the
    /// contract.
    fn read(&mut self, custom: &CustomSectionReader<'_>) {
        if custom.name() == "version" {
            self.version = std::str::from_utf8(custom.data()).ok().and_then(plain);
        } else if let KnownCustom::ComponentName(names) = custom.as_known() {
            for name in names.into_iter().map_while(Result::ok) {
                if let ComponentName::Component { name, .. } = name {
                    self.name = plain(name);
                }
            }
        }
    }

    fn facts(self, contract: &str) -> Facts {
        Facts {
            contract: contract.to_owned(),
            name: self.name.unwrap_or_default(),
            version: self.version.unwrap_or_default(),
            ..Facts::default()
        }
    }
}

/// Reads the languages and tools in a custom section `producers`. Malformed ones are ignored: they are not part of the contract.
fn read_tools(custom: &CustomSectionReader<'_>, tools: &mut BTreeSet<Tool>) {
    let KnownCustom::Producers(fields) = custom.as_known() else { return };
    for field in fields.into_iter().map_while(Result::ok) {
        for value in field.values.into_iter().map_while(Result::ok) {
            let (Some(role), Some(name)) = (plain(field.name), plain(value.name)) else { continue };
            if tools.len() >= TOOLS {
                return;
            }
            tools.insert(Tool { role, name, version: plain(value.version).unwrap_or_default() });
        }
    }
}

/// A short text without control characters, safe to display.
fn plain(text: &str) -> Option<String> {
    (!text.is_empty() && text.len() <= TEXT_BYTES && !text.contains(is_deceptive)).then(|| text.to_owned())
}

fn push(names: &mut Vec<String>, name: &str) -> Result<(), LoadError> {
    if names.len() >= NAMES {
        return Err(LoadError::NotAComponent(format!("it has more than {NAMES} imports or exports")));
    }
    names.push(sanitize(name.to_owned(), 256));
    Ok(())
}

fn parse(data: &[u8]) -> Result<Facts, LoadError> {
    if data.len() > SECTION_BYTES {
        return Err(LoadError::Facts(format!("it is larger than {SECTION_BYTES} bytes")));
    }
    let facts: Facts =
        serde_json::from_slice(data).map_err(|error| LoadError::Facts(sanitize(error.to_string(), 512)))?;
    let lists = [&facts.formats, &facts.capabilities, &facts.optional].into_iter().flatten();
    for text in [&facts.contract, &facts.name, &facts.version].into_iter().chain(lists) {
        if text.len() > TEXT_BYTES || text.contains(is_deceptive) {
            let problem = format!("a text is longer than {TEXT_BYTES} bytes or contains control characters");
            return Err(LoadError::Facts(problem));
        }
    }
    Ok(facts)
}

/// The version of the contract whose `provisioner` interface is exported.
fn exported_contract(exports: &[String]) -> Result<&str, LoadError> {
    let interface = format!("{PACKAGE}/provisioner@");
    let mut versions = exports.iter().filter_map(|name| name.strip_prefix(&interface));
    let Some(version) = versions.clone().find(|version| contract::supports(version)).or_else(|| versions.next()) else {
        return Err(LoadError::UnsupportedContract(format!("the component does not export {PACKAGE}/provisioner")));
    };
    if contract::supports(version) { Ok(version) } else { Err(unsupported(version)) }
}

fn unsupported(version: &str) -> LoadError {
    LoadError::UnsupportedContract(format!(
        "the component is built against version {version:?}, and this host supports {}",
        contract::TRACKS.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn component(text: &str) -> Result<Outline, String> {
        outline(&wat::parse_str(text).unwrap()).map_err(|error| error.to_string())
    }

    const EXPORT: &str = r#"(instance $i) (export "chandler:provisioner/provisioner@0.1.0" (instance $i))"#;

    fn with_section(json: &str) -> Result<Outline, String> {
        let json = json.replace('"', "\\\"");
        component(&format!("(component (core module $m (@custom \"chandler:provisioner\" \"{json}\")) {EXPORT})"))
    }

    #[test]
    fn facts_are_found_in_a_nested_module() {
        let outline =
            with_section(r#"{"contract":"0.1.0","name":"x","version":"1.2.3","formats":["plain+v0"]}"#).unwrap();
        assert_eq!(outline.facts.name, "x");
        assert_eq!(outline.facts.formats, ["plain+v0"]);
        let without = component(&format!("(component {EXPORT})")).unwrap();
        assert_eq!(without.facts, Facts { contract: "0.1.0".into(), ..Facts::default() });
    }

    #[test]
    fn unloadable_components_are_rejected_before_compilation() {
        let refused = [
            component("(module)"),
            component("(component)"),
            component(r#"(component (instance $i) (export "chandler:provisioner/provisioner@0.2.0" (instance $i)))"#),
            with_section(r#"{"contract":"0.2.0"}"#),
            with_section(r#"{"contract":"0.1.7","name":"x"}"#),
            with_section(r#"{"contract":"0.1.0","capabilities":["cluster/read"]}"#),
            with_section("{}"),
            with_section(r#"{"contract":"0.1.0","name":"\n"}"#),
        ];
        let texts: Vec<String> = refused.into_iter().map(|result| result.map(|_| ()).unwrap_err()).collect();
        insta::assert_snapshot!(texts.join("\n"), @r#"
        not a WebAssembly component: it is a core module; `chandler plugin build` makes a component of it
        the contract is not supported: the component does not export chandler:provisioner/provisioner
        the contract is not supported: the component is built against version "0.2.0", and this host supports 0.1
        the contract is not supported: the component is built against version "0.2.0", and this host supports 0.1
        the custom section `chandler:provisioner` is malformed: it declares version "0.1.7" of the contract, but the component exports version "0.1.0"
        the component requires capabilities that were not granted: cluster/read
        the custom section `chandler:provisioner` is malformed: missing field `contract` at line 1 column 2
        the custom section `chandler:provisioner` is malformed: control character (\u0000-\u001F) found while parsing a string at line 2 column 0
        "#);
        assert!(outline(b"").is_err() && outline(b"\0asm").is_err());
    }

    #[test]
    fn the_sections_of_the_tool_conventions_give_name_and_version() {
        let facts = |name: &str, sections: &str| {
            let outline = component(&format!("(component {name} {sections} {EXPORT})")).unwrap();
            (outline.facts.name, outline.facts.version, outline.facts.contract)
        };
        let known = |name: &str, version: &str| (name.to_owned(), version.to_owned(), "0.1.0".to_owned());
        assert_eq!(facts("$oxen", r#"(@custom "version" "2.1.0")"#), known("oxen", "2.1.0"));
        assert_eq!(facts("", ""), known("", ""));
        // Sections of nested components do not apply to the whole, and unprintable values are dropped.
        assert_eq!(facts("", r#"(component $part (@custom "version" "9"))"#), known("", ""));
        assert_eq!(facts("", r#"(@custom "version" "1\1b[31m")"#), known("", ""));
        assert_eq!(facts("", r#"(@custom "version" "\ff")"#), known("", ""));
        assert_eq!(facts("", &format!(r#"(@custom "version" "{}")"#, "9".repeat(1000))), known("", ""));
        // The section of the contract takes precedence.
        let both = r#"(component $oxen (@custom "version" "2.1.0")
            (core module $m (@custom "chandler:provisioner" "{\"contract\":\"0.1.0\",\"name\":\"ox\"}"))"#;
        let outline = component(&format!("{both} {EXPORT})")).unwrap();
        assert_eq!((outline.facts.name.as_str(), outline.facts.version.as_str()), ("ox", ""));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>, cut in 0_usize..400) {
            let _ = outline(&bytes);
            let mut wasm = wat::parse_str(format!("(component (core module (func)) {EXPORT})")).unwrap();
            wasm.truncate(cut);
            wasm.extend(bytes);
            let _ = outline(&wasm);
        }
    }
}
