//! The built-in provisioner components, and the choice of a provisioner by class or format.
//!
//! The components are built for `wasm32-unknown-unknown` by `cargo xtask plugins` and run in the same sandbox, with the
//! same limits, as third-party provisioners.

mod provisioners;

pub use provisioners::{DetectError, Provisioners};

/// A provisioner that is embedded in Chandler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// The class, as in `spec.provisionerClassName` of a BundleDeployment.
    pub class: &'static str,
    /// The name of the format, as returned by `detect`.
    pub format: &'static str,
    /// The Wasm component.
    pub component: &'static [u8],
}

/// A provisioner whose file, and the end of its class, is this name.
macro_rules! builtin {
    ($name:literal, $format:literal) => {
        Builtin {
            class: concat!("core-rukpak-io-", $name),
            format: $format,
            component: include_bytes!(concat!(env!("CHANDLER_PLUGINS_DIRECTORY"), "/", $name, ".wasm")),
        }
    };
}

/// All built-in provisioners, in the order in which they detect formats: narrower formats first. `cargo xtask plugins` builds each
/// directory of `plugins/`; those that are not here are published as components (`PUBLISHED` in xtask/src/guests.rs).
pub const BUILTINS: &[Builtin] =
    &[builtin!("registry", "registry+v1"), builtin!("resolveset", "resolveset+v0"), builtin!("plain", "plain+v0")];

/// The provisioner of a class.
pub fn find(class: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.class == class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_class_has_a_component() {
        for builtin in BUILTINS {
            // The preamble of a component: magic, version 13, layer 1.
            assert!(builtin.component.starts_with(b"\0asm\x0d\0\x01\0"), "{}", builtin.class);
            assert_eq!(find(builtin.class), Some(builtin));
        }
        assert_eq!(find("core-rukpak-io-helm"), None);
    }
}
