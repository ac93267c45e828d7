//! All targets by name.

use chandler_helm::Helm;
use chandler_plain::Plain;
use chandler_registry::Registry;

use crate::{
    api, archive::Archive, archives, browser, cached, catalogs, charts, delegation, documents, edits, expressions,
    generated, git, helm_index, image, json, kubeconfigs, notifications, numbers, patterns, provision, registries,
    releases, resolver, signature, text, webhooks,
};
#[cfg(feature = "sandbox")]
use crate::{component_size, sandbox};

/// A property that must hold for every input.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the fuzz target, of its corpus and of its regressions.
    pub name: &'static str,
    /// Panics if it does not hold.
    pub holds: fn(&[u8]),
}

/// All targets, in alphabetical order.
pub const TARGETS: &[Target] = &[
    Target { name: "api", holds: api::objects },
    Target { name: "archive", holds: archives::holds },
    Target { name: "browser", holds: browser::holds },
    Target { name: "cached", holds: cached::holds },
    Target { name: "catalog", holds: catalogs::holds },
    Target { name: "catalog_index", holds: catalogs::altered },
    Target { name: "chart", holds: charts::holds },
    #[cfg(feature = "sandbox")]
    Target { name: "component", holds: sandbox::component_holds },
    #[cfg(feature = "sandbox")]
    Target { name: "component_size", holds: component_size::holds },
    Target { name: "delegation", holds: delegation::holds },
    Target { name: "detect", holds: detect },
    Target { name: "expression", holds: expressions::holds },
    Target { name: "generated", holds: generated::holds },
    Target { name: "git", holds: git::holds },
    Target { name: "helm_index", holds: helm_index::holds },
    Target { name: "image", holds: image::holds },
    Target { name: "json", holds: json::holds },
    Target { name: "known_hosts", holds: git::known_hosts },
    Target { name: "kubeconfig", holds: kubeconfigs::holds },
    Target { name: "notification", holds: notifications::holds },
    Target { name: "numbers", holds: numbers::holds },
    Target { name: "patterns", holds: patterns::holds },
    Target { name: "plain", holds: plain },
    Target { name: "protobuf", holds: api::wire },
    Target { name: "registries", holds: registries::holds },
    Target { name: "registry", holds: registry },
    Target { name: "registry_edits", holds: edits::holds },
    Target { name: "release", holds: releases::holds },
    Target { name: "resolver", holds: resolver::holds },
    #[cfg(feature = "sandbox")]
    Target { name: "sandbox", holds: sandbox::holds },
    Target { name: "signature", holds: signature::holds },
    Target { name: "text", holds: text::holds },
    Target { name: "webhook", holds: webhooks::holds },
    Target { name: "yaml", holds: documents::holds },
    Target { name: "zip", holds: archives::zip_holds },
];

/// Checks one input of one target.
///
/// # Panics
/// If the property does not hold, or if there is no such target.
pub fn check(target: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|known| known.name == target).expect("a target with this name");
    (target.holds)(input);
}

/// The detection and the schema of the provisioners, on any content.
fn detect(input: &[u8]) {
    let archive = Archive::read(input);
    provision::looks::<Registry>(&archive, input);
    provision::looks::<Plain>(&archive, input);
    provision::looks::<Helm>(&archive, input);
}

fn plain(input: &[u8]) {
    provision::holds::<Plain>(&Archive::read(input), input);
}

fn registry(input: &[u8]) {
    provision::holds::<Registry>(&Archive::read(input), input);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        assert!(TARGETS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }
}
