//! The first-party provisioner components, embedded, and how a class or a format finds its provisioner.
//!
//! They are built for `wasm32-unknown-unknown` by `cargo xtask plugins` and run in the same sandbox, under the same limits,
//! as anybody else's.

mod provisioners;

pub use provisioners::{DetectError, Provisioners};

/// A provisioner that comes with Chandler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Builtin {
    /// What `spec.provisionerClassName` of a BundleDeployment names.
    pub class: &'static str,
    /// The name of the format, as `detect` of the component gives it.
    pub format: &'static str,
    /// The component.
    pub component: &'static [u8],
}

/// All of them, in the order in which they are asked to detect a format: the one with the narrower format first.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        class: "core-rukpak-io-registry",
        format: "registry+v1",
        component: include_bytes!(env!("CHANDLER_PLUGIN_REGISTRY")),
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
    fn every_class_is_there_and_holds_a_component() {
        for class in ["core-rukpak-io-plain", "core-rukpak-io-registry"] {
            let builtin = find(class).unwrap();
            // The preamble of a component: magic, version 13, layer 1.
            assert!(builtin.component.starts_with(b"\0asm\x0d\0\x01\0"), "{class}");
        }
        assert_eq!(find("core-rukpak-io-helm"), None);
    }
}
