//! The artifact of a component, as the CNCF specifies it for WebAssembly in OCI registries.

use std::collections::BTreeMap;

use chandler_core::Digest;
use chandler_engine::Inspection;
use serde_json::json;

use super::image::{Image, MANIFEST};

const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const LAYER: &str = "application/wasm";
/// The version of the contract.
const CONTRACT: &str = "dev.chandler.provisioner.contract";
/// The formats that it declares, separated by commas.
const FORMATS: &str = "dev.chandler.provisioner.formats";

/// The artifact of a component. The annotations replace those that follow from what it declares. Equal components and annotations make equal
/// artifacts: they have no time.
pub fn pack(wasm: Vec<u8>, inspection: &Inspection, annotations: BTreeMap<String, String>) -> Image {
    let (facts, layer) = (&inspection.facts, Digest::of(&wasm));
    let export = format!("chandler:provisioner/provisioner@{}", facts.contract);
    let config = json!({
        // Tools expect a time.
        "created": "1970-01-01T00:00:00Z",
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer],
        "component": {"exports": [export], "imports": inspection.imports, "target": null},
    });
    let config = config.to_string().into_bytes();
    let declared = [
        ("org.opencontainers.image.title", facts.name.clone()),
        ("org.opencontainers.image.version", facts.version.clone()),
        (CONTRACT, facts.contract.clone()),
        (FORMATS, facts.formats.join(",")),
    ];
    let declared = declared.into_iter().filter(|(_, value)| !value.is_empty());
    let mut all: BTreeMap<String, String> = declared.map(|(key, value)| (key.to_owned(), value)).collect();
    all.extend(annotations);
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": CONFIG, "digest": Digest::of(&config), "size": config.len()},
        "layers": [{"mediaType": LAYER, "digest": layer, "size": wasm.len()}],
        "annotations": all,
    });
    Image::new(&manifest, config, wasm.into())
}
