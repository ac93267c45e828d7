//! Components of provisioners, from files and from registries, and what they say about themselves.

use std::path::Path;

use chandler_content::{ContentError, ImageAccess, ImageReference, RequiredSignatures};
use chandler_core::Digest;
use chandler_engine::{CONTRACT_VERSIONS, EngineOptions, Inspection, MissingImport, Tool};
use indicatif::HumanBytes;
use serde::Serialize;

use super::{file, registry_settings::RegistryOptions, source};
use crate::{
    CommandError,
    view::text::{count, one_line},
};

/// The bytes of a component, and its name in messages. A path that exists, or that ends in `.wasm`, is a file; everything else is an image.
pub async fn read(named: &str, cache: &Path, registry: &RegistryOptions) -> Result<(String, Vec<u8>), CommandError> {
    let (path, name) = (Path::new(named), one_line(named));
    if path.exists() || path.extension().is_some_and(|extension| extension == "wasm") {
        return Ok((name, file(path)?));
    }
    let image: ImageReference = named.parse().map_err(|error| {
        CommandError::usage(format!("{name} is neither a file nor an image"))
            .because(&error)
            .hint("name a component file, or an artifact with its registry and tag: `registry.example.com/provisioners/sail:v1`")
    })?;
    pull(&image, cache, registry, None).await
}

/// The component of an artifact, and the artifact with its digest. With `signatures`, an artifact that lacks them is refused.
pub async fn pull(
    image: &ImageReference,
    cache: &Path,
    registry: &RegistryOptions,
    signatures: Option<RequiredSignatures>,
) -> Result<(String, Vec<u8>), CommandError> {
    let access = ImageAccess { signatures, ..source::access(image, registry).await? };
    let images = source::images(source::store(cache).await?, registry)?;
    let resolved = images.resolve(image, &access).await.map_err(|error| not_pulled(image, &error))?;
    let wasm = images.fetch_component(&resolved, &access, EngineOptions::default().component_bytes).await;
    Ok((resolved.pinned().to_string(), wasm.map_err(|error| not_pulled(image, &error))?))
}

/// The artifact with the digest that its tag has now.
pub async fn resolved(
    image: &ImageReference,
    cache: &Path,
    registry: &RegistryOptions,
) -> Result<ImageReference, CommandError> {
    let access = source::access(image, registry).await?;
    let images = source::images(source::store(cache).await?, registry)?;
    let resolved = images.resolve(image, &access).await.map_err(|error| not_pulled(image, &error))?;
    Ok(resolved.pinned())
}

fn not_pulled(image: &ImageReference, error: &ContentError) -> CommandError {
    match error {
        ContentError::Unverified { .. } => {
            CommandError::refused(format!("{image} lacks the signatures that are demanded"))
                .because(error)
                .hint("sign it with `chandler plugin sign` or `cosign sign`, or correct --key or the rule")
        }
        _ => CommandError::failed(format!("failed to pull {image}"))
            .because(error)
            .hint("it is pulled with your credentials: `docker login`, --registry-config"),
    }
}

/// The bytes of a file.
pub fn file(path: &Path) -> Result<Vec<u8>, CommandError> {
    file::read(path, EngineOptions::default().component_bytes).map_err(|error| {
        CommandError::usage(format!("failed to read {}", one_line(&path.display().to_string()))).because(&error)
    })
}

/// What a component says about itself. `name` names it in errors.
pub fn inspected(wasm: &[u8], name: &str) -> Result<Inspection, CommandError> {
    Inspection::of(wasm).map_err(|error| {
        let is_module = wasm.get(4..8) == Some(&[1, 0, 0, 0]);
        let hint = if is_module {
            "`chandler plugin build MODULE --to FILE` makes a component of a core module"
        } else {
            "a provisioner is a component that exports the contract in wit/: build it with the SDK, or with the tools of its language"
        };
        CommandError::failed(format!("{name} is not a provisioner that this version can load")).because(&error).hint(hint)
    })
}

/// A component as the commands show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// The digest of the component.
    pub digest: Digest,
    /// Its size.
    pub bytes: usize,
    /// What it says.
    #[serde(flatten)]
    pub inspection: Inspection,
}

impl Described {
    /// A component that says this.
    pub fn new(wasm: &[u8], inspection: Inspection) -> Self {
        Self { digest: Digest::of(wasm), bytes: wasm.len(), inspection }
    }

    /// Fails if this version cannot load it.
    pub fn usable(&self, name: &str) -> Result<(), CommandError> {
        let missing = &self.inspection.missing;
        if missing.is_empty() {
            return Ok(());
        }
        let listed: Vec<String> = missing.iter().map(ToString::to_string).collect();
        Err(CommandError::failed(format!("{name} imports what a provisioner does not have")).cause(listed.join("; ")))
    }

    /// What an author should know before publishing it.
    pub fn warnings(&self) -> Vec<String> {
        let facts = &self.inspection.facts;
        let mut warnings = Vec::new();
        if facts.formats.is_empty() {
            warnings.push(
                "the component declares no format, so that BundleDeployments must name its class: `chandler plugin annotate --format`"
                    .to_owned(),
            );
        }
        if facts.name.is_empty() || facts.version.is_empty() {
            warnings.push(
                "statuses show name and version of a component, and this one lacks them: `chandler plugin annotate --name --version`"
                    .to_owned(),
            );
        }
        warnings
    }

    /// The text.
    pub fn text(&self) -> String {
        let Inspection { facts, declares_facts, imports, missing, tools } = &self.inspection;
        let or = |text: &str, instead: &str| if text.is_empty() { instead.to_owned() } else { one_line(text) };
        let source = if *declares_facts { "declared" } else { "from its exports and metadata" };
        let formats = or(&facts.formats.join(", "), "none: BundleDeployments must name its class");
        let supported = CONTRACT_VERSIONS.join(", ");
        let mut lines = Vec::new();
        let mut line = |name: &str, value: &str| lines.push(format!("{name:<11}{value}\n"));
        line("component", &format!("{} ({})", self.digest, HumanBytes(self.bytes as u64)));
        line("name", &or(&facts.name, "none"));
        line("version", &or(&facts.version, "none"));
        line("contract", &format!("{} (supported: {supported})", one_line(&facts.contract)));
        line("formats", &formats);
        line("facts", source);
        line("imports", &count(imports.len(), "interface"));
        for import in imports {
            let problem = missing.iter().find(|MissingImport { name, .. }| name == import);
            line("", &problem.map_or_else(|| one_line(import), |missing| format!("{missing}")));
        }
        for Tool { role, name, version } in tools {
            let tool = format!("{name} {version}");
            line(if role == "language" { "language" } else { "tool" }, &one_line(tool.trim()));
        }
        lines.concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(parts: &str) -> Described {
        let export = r#"(instance $i) (export "chandler:provisioner/provisioner@0.1.0" (instance $i))"#;
        let wasm = wat::parse_str(format!("(component {parts} {export})")).unwrap();
        let inspection = inspected(&wasm, "sail.wasm").unwrap();
        Described::new(&wasm, inspection)
    }

    #[test]
    fn the_text_says_what_a_controller_would() {
        let found = described(
            r#"(import "wasi:io/streams@0.2.6" (instance)) (import "wasi:http/types@0.2.6" (instance))
               (@custom "chandler:provisioner" "{\"contract\":\"0.1.0\",\"name\":\"sail\",\"version\":\"1.0.0\",\"formats\":[\"sail+v0\"]}")"#,
        );
        insta::assert_snapshot!(found.text());
        assert!(found.warnings().is_empty());
        insta::assert_snapshot!(found.usable("sail.wasm").unwrap_err().to_string());
        let bare = described("");
        assert_eq!(bare.warnings().len(), 2);
        assert!(bare.usable("sail.wasm").is_ok());
    }

    #[test]
    fn what_is_not_a_component_is_refused_with_what_helps() {
        let refused = |text: &str| inspected(&wat::parse_str(text).unwrap(), "x.wasm").unwrap_err().to_string();
        insta::assert_snapshot!([refused("(module)"), refused("(component)")].join("\n"));
    }
}
