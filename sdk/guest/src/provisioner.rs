//! The trait, and the facts of a provisioner.

use crate::{Content, Failure, Output, Request};

/// A provisioner: a pure function from content, configuration and target to objects.
///
/// The host may call each function at any time, in a fresh instance. It caches releases by content, component,
/// configuration and the answers of [`Request`] that the provisioner used: the same inputs must give the same objects
/// in the same order.
pub trait Provisioner {
    /// Facts that the host reads before it runs anything.
    const FACTS: Facts;

    /// The name and version of the format, such as `registry+v1`, if this provisioner supports the content. Cheap: it
    /// reads only names and a few small files.
    fn detect(content: &dyn Content) -> Option<String>;

    /// The JSON Schema (2020-12) of the configuration for this content. The host enforces it: nothing is installed with
    /// a configuration that does not match. It may still call [`provision`](Self::provision) with one, to collect
    /// further findings, and discards everything else. Without a schema every configuration is passed on.
    ///
    /// # Errors
    /// The schema cannot be determined from this content; nothing is installed.
    fn config_schema(content: &dyn Content) -> Result<Option<String>, Failure> {
        let _ = content;
        Ok(None)
    }

    /// Emits the objects of the release.
    ///
    /// # Errors
    /// The case of [`Failure`] decides when the host retries.
    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure>;
}

/// Facts of a provisioner that are known before it runs. They are in the custom section `chandler:provisioner` of the
/// component, as JSON.
#[derive(Clone, Copy, Debug)]
pub struct Facts {
    name: &'static str,
    version: &'static str,
    formats: &'static [&'static str],
    optional: &'static [&'static str],
}

/// The version of the contract that this SDK implements.
pub const CONTRACT: &str = "0.1.0";

impl Facts {
    /// A provisioner with this name and version. Both may contain printable ASCII except `"` and `\`.
    pub const fn new(name: &'static str, version: &'static str) -> Self {
        Self { name, version, formats: &[], optional: &[] }
    }

    /// Sets the formats that it supports.
    pub const fn formats(mut self, formats: &'static [&'static str]) -> Self {
        self.formats = formats;
        self
    }

    /// Sets the functions of the contract that it can do without, as `interface#function`. Hosts that lack one load the component
    /// nevertheless, and trap when it is called: query [`Request::supports`] before.
    pub const fn optional(mut self, functions: &'static [&'static str]) -> Self {
        self.optional = functions;
        self
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Its version.
    pub const fn version(&self) -> &'static str {
        self.version
    }

    /// The length of the custom section in bytes.
    #[doc(hidden)]
    pub const fn section_len(&self) -> usize {
        self.write([0; 0]).1
    }

    /// The custom section. `N` must be [`section_len`](Self::section_len).
    #[doc(hidden)]
    pub const fn section<const N: usize>(&self) -> [u8; N] {
        self.write([0; N]).0
    }

    /// Writes the section as far as there is room, and returns its full length.
    const fn write<const N: usize>(&self, bytes: [u8; N]) -> ([u8; N], usize) {
        let mut text = Text { bytes, len: 0 };
        text = text.push(r#"{"contract":""#).push_plain(CONTRACT);
        text = text.push(r#"","name":""#).push_plain(self.name);
        text = text.push(r#"","version":""#).push_plain(self.version);
        text = text.push(r#"","formats":"#).push_list(self.formats).push(r#","capabilities":[]"#);
        if !self.optional.is_empty() {
            text = text.push(r#","optional":"#).push_list(self.optional);
        }
        text = text.push("}");
        (text.bytes, text.len)
    }
}

/// Text that is built at compile time.
struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    #[expect(clippy::indexing_slicing, reason = "the index is compared with the length; a slip stops the compiler")]
    const fn push(mut self, text: &str) -> Self {
        let text = text.as_bytes();
        let mut index = 0;
        while index < text.len() {
            if self.len < N {
                self.bytes[self.len] = text[index];
            }
            self.len += 1;
            index += 1;
        }
        self
    }

    /// A list of texts that need no escaping.
    const fn push_list(self, texts: &[&str]) -> Self {
        let mut text = self.push("[");
        let mut rest = texts;
        while let [one, others @ ..] = rest {
            text = text.push("\"").push_plain(one).push(if others.is_empty() { "\"" } else { "\"," });
            rest = others;
        }
        text.push("]")
    }

    /// Text that needs no escaping in JSON. Any other text is a compile error.
    const fn push_plain(self, text: &str) -> Self {
        let mut rest = text.as_bytes();
        while let [byte, others @ ..] = rest {
            assert!(*byte >= b' ' && *byte < 0x7f && *byte != b'"' && *byte != b'\\', "facts are plain ASCII");
            rest = others;
        }
        self.push(text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn the_section_is_json() {
        const FACTS: Facts = Facts::new("plain", "1.2.3").formats(&["plain+v0", "plain+v1"]);
        const SECTION: [u8; FACTS.section_len()] = FACTS.section();
        const DEGRADING: Facts = FACTS.optional(&["request#ahead", "output#mark"]);
        const DECLARED: [u8; DEGRADING.section_len()] = DEGRADING.section();
        let section: Value = serde_json::from_slice(&SECTION).unwrap();
        assert_eq!(
            section,
            serde_json::json!({
                "contract": "0.1.0", "name": "plain", "version": "1.2.3", "formats": ["plain+v0", "plain+v1"],
                "capabilities": []
            })
        );
        let section: Value = serde_json::from_slice(&DECLARED).unwrap();
        assert_eq!(section["optional"], serde_json::json!(["request#ahead", "output#mark"]));
    }

    #[test]
    fn the_contract_is_that_of_the_wit_package() {
        let wit = include_str!("../wit/provisioner.wit");
        assert!(wit.contains(&format!("package chandler:provisioner@{CONTRACT};")));
    }
}
