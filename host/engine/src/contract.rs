//! The bindings of the contract for wasmtime, and the versions of the contract that this host supports.

pub(crate) mod bindings {
    #![allow(missing_docs, unreachable_pub, clippy::pedantic, reason = "generated from the WIT")]

    wasmtime::component::bindgen!({
        path: "../../wit/0.1.0",
        world: "plugin",
        imports: { default: trappable },
        exports: { default: async },
        additional_derives: [PartialEq],
        with: {
            "chandler:provisioner/content.bundle": crate::host::Bundle,
        },
    });
}

/// The package of the contract.
pub(crate) const PACKAGE: &str = "chandler:provisioner";

/// The version whose functions this host provides.
pub(crate) const VERSION: &str = "0.1.0";

/// The versions of the contract that this host supports, as `major.minor`.
pub const TRACKS: &[&str] = &["0.1"];

/// Whether this host supports a version of the contract. It runs components built against any patch version of a
/// supported `major.minor`, provided that it has their imports. Pre-releases are not supported.
pub(crate) fn supports(version: &str) -> bool {
    let Some((track, patch)) = version.rsplit_once('.') else { return false };
    TRACKS.contains(&track) && !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_patch_versions_of_a_track_are_supported() {
        for good in ["0.1.0", "0.1.17"] {
            assert!(supports(good), "{good}");
        }
        for bad in ["", "0", "0.1", "0.2.0", "1.0.0", "0.1.0-rc.1", "0.1.", "00.1.0", "0.1.x"] {
            assert!(!supports(bad), "{bad}");
        }
    }
}
