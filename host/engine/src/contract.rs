//! The contract as wasmtime sees it, and which versions of it this host speaks.

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

/// The tracks of the contract that this host speaks, as `major.minor`.
pub(crate) const TRACKS: &[&str] = &["0.1"];

/// Whether this host speaks a version of the contract: within a track it runs what was built against any patch version,
/// as long as the imports are there. A pre-release is a track of its own.
pub(crate) fn speaks(version: &str) -> bool {
    let Some((track, patch)) = version.rsplit_once('.') else { return false };
    TRACKS.contains(&track) && !patch.is_empty() && patch.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_track_is_spoken_as_a_whole() {
        for good in ["0.1.0", "0.1.17"] {
            assert!(speaks(good), "{good}");
        }
        for bad in ["", "0", "0.1", "0.2.0", "1.0.0", "0.1.0-rc.1", "0.1.", "00.1.0", "0.1.x"] {
            assert!(!speaks(bad), "{bad}");
        }
    }
}
