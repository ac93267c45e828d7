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

/// All built-in provisioners, in the order in which they detect formats: narrower formats first.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        class: "core-rukpak-io-registry",
        format: "registry+v1",
        component: include_bytes!(env!("CHANDLER_PLUGIN_REGISTRY")),
    },
    Builtin {
        class: "core-rukpak-io-resolveset",
        format: "resolveset+v0",
        component: include_bytes!(env!("CHANDLER_PLUGIN_RESOLVESET")),
    },
    Builtin {
        class: "core-rukpak-io-plain",
        format: "plain+v0",
        component: include_bytes!(env!("CHANDLER_PLUGIN_PLAIN")),
    },
];

/// The provisioner of a class.
pub fn find(class: &str) -> Option<&'static Builtin> {
    BUILTINS.iter().find(|builtin| builtin.class == class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_class_has_a_component() {
        for class in ["core-rukpak-io-plain", "core-rukpak-io-registry", "core-rukpak-io-resolveset"] {
            let builtin = find(class).unwrap();
            // The preamble of a component: magic, version 13, layer 1.
            assert!(builtin.component.starts_with(b"\0asm\x0d\0\x01\0"), "{class}");
        }
        assert_eq!(find("core-rukpak-io-helm"), None);
    }
}
