//! Bills of materials: what the binary consists of, in the two formats that scanners read.

use anyhow::Context as _;
use serde_json::{Map, Value, json};

use super::{
    crates::{Crate, Crates, Id, root},
    digest,
    json::set,
    time::BuildTime,
};

/// What the bills are about.
pub(super) struct Subject<'a> {
    /// The SHA-256 of the binary in hexadecimal.
    pub(super) hash: &'a str,
    /// The version of the compiler, whose standard library is linked.
    pub(super) rustc: &'a str,
    /// The version of the C library that is linked, if it is glibc.
    pub(super) glibc: Option<&'a str>,
    pub(super) time: BuildTime,
}

/// A library that is linked and not a crate.
struct Library {
    name: &'static str,
    version: String,
    license: &'static str,
    url: &'static str,
}

impl Subject<'_> {
    fn libraries(&self) -> Vec<Library> {
        let version = self.rustc.split(' ').nth(1).unwrap_or(self.rustc).to_owned();
        let url = "https://github.com/rust-lang/rust";
        let mut libraries = vec![Library { name: "rust-std", version, license: "MIT OR Apache-2.0", url }];
        if let Some(version) = self.glibc {
            let (license, url) = ("LGPL-2.1-or-later", "https://sourceware.org/git/glibc.git");
            libraries.push(Library { name: "glibc", version: version.to_owned(), license, url });
        }
        libraries
    }

    /// An identifier that depends on the binary only, in the form of a UUID of version 8.
    fn uuid(&self) -> anyhow::Result<String> {
        let hash = digest::hexadecimal(self.hash.as_bytes());
        let part = |from: usize, to: usize| hash.get(from..to).context("a digest is too short");
        let (version, variant) = (part(13, 16)?, part(17, 20)?);
        Ok(format!("{}-{}-8{version}-8{variant}-{}", part(0, 8)?, part(8, 12)?, part(20, 32)?))
    }
}

/// <https://github.com/package-url/purl-spec>. Crates of this repository are in no registry.
fn package_url(id: &Id, crate_: &Crate) -> Option<String> {
    // `+` is the only sign of crate names and versions that must be escaped.
    crate_.checksum.is_some().then(|| format!("pkg:cargo/{}@{}", id.0, id.1.replace('+', "%2B")))
}

fn reference(id: &Id) -> String {
    format!("{}@{}", id.0, id.1)
}

/// In CycloneDX 1.6. <https://cyclonedx.org/docs/1.6/json/>
pub(super) fn cyclonedx(crates: &Crates, subject: &Subject<'_>) -> anyhow::Result<Value> {
    let hashes = |hash: &str| json!([{"alg": "SHA-256", "content": hash}]);
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    let mut command = Value::Null;
    for (id, crate_) in &crates.0 {
        let mut component = json!({"type": "library", "bom-ref": reference(id), "name": id.0, "version": id.1});
        if let Some(license) = &crate_.license {
            set(&mut component, "licenses", json!([{"expression": license}]));
        }
        if let Some(repository) = &crate_.repository {
            set(&mut component, "externalReferences", json!([{"type": "vcs", "url": repository}]));
        }
        if let Some(checksum) = &crate_.checksum {
            set(&mut component, "hashes", hashes(checksum));
        }
        if let Some(url) = package_url(id, crate_) {
            set(&mut component, "purl", url);
        }
        let depends: Vec<String> = crate_.dependencies.iter().map(reference).collect();
        dependencies.push(json!({"ref": reference(id), "dependsOn": depends}));
        if *id == root() {
            set(&mut component, "type", "application");
            set(&mut component, "hashes", hashes(subject.hash));
            command = component;
        } else {
            // `excluded`: part of the build only.
            set(&mut component, "scope", if crate_.is_linked { "required" } else { "excluded" });
            components.push(component);
        }
    }
    for Library { name, version, license, url } in subject.libraries() {
        components.push(json!({
            "type": "library", "bom-ref": format!("{name}@{version}"), "name": name, "version": version, "scope": "required",
            "licenses": [{"expression": license}], "externalReferences": [{"type": "vcs", "url": url}],
        }));
    }
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": format!("urn:uuid:{}", subject.uuid()?),
        "version": 1,
        "metadata": {
            "timestamp": subject.time.rfc3339()?,
            "tools": {"components": [{"type": "application", "name": "cargo xtask dist", "version": root().1}]},
            "component": command,
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The identifier of a package in an SPDX document, which has letters, numbers, `.` and `-` only.
fn spdx_identifier(name: &str, version: &str) -> String {
    let text = format!("SPDXRef-{name}-{version}");
    // Two crates whose names differ in `_` and `-` are one crate to the registry.
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

/// In SPDX 2.3. <https://spdx.github.io/spdx-spec/v2.3/>
pub(super) fn spdx(crates: &Crates, subject: &Subject<'_>) -> anyhow::Result<Value> {
    const UNKNOWN: &str = "NOASSERTION";
    let package = |name: &str, version: &str, license: Option<&str>, location: String| -> Map<String, Value> {
        Map::from_iter([
            ("SPDXID".to_owned(), spdx_identifier(name, version).into()),
            ("name".to_owned(), name.into()),
            ("versionInfo".to_owned(), version.into()),
            ("downloadLocation".to_owned(), location.into()),
            ("filesAnalyzed".to_owned(), false.into()),
            ("licenseConcluded".to_owned(), UNKNOWN.into()),
            ("licenseDeclared".to_owned(), license.unwrap_or(UNKNOWN).into()),
            ("copyrightText".to_owned(), UNKNOWN.into()),
        ])
    };
    let checksums = |hash: &str| json!([{"algorithm": "SHA256", "checksumValue": hash}]);
    let identifier = |id: &Id| spdx_identifier(&id.0, &id.1);
    let relation = |from: &str, kind: &str, to: &str| json!({"spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to});
    let command = identifier(&root());
    let mut packages = Vec::new();
    let mut relations = vec![relation("SPDXRef-DOCUMENT", "DESCRIBES", &command)];
    for (id, crate_) in &crates.0 {
        let url = package_url(id, crate_);
        let location = match &crate_.checksum {
            Some(_) => format!("https://static.crates.io/crates/{0}/{0}-{1}.crate", id.0, id.1),
            None => format!("git+{}", env!("CARGO_PKG_REPOSITORY")),
        };
        let mut entry = package(&id.0, &id.1, crate_.license.as_deref(), location);
        let hash = if *id == root() { Some(subject.hash) } else { crate_.checksum.as_deref() };
        if let Some(hash) = hash {
            entry.insert("checksums".to_owned(), checksums(hash));
        }
        if let Some(url) = url {
            let reference =
                json!({"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": url});
            entry.insert("externalRefs".to_owned(), json!([reference]));
        }
        let purpose = if *id == root() { "APPLICATION" } else { "LIBRARY" };
        entry.insert("primaryPackagePurpose".to_owned(), purpose.into());
        packages.push(Value::Object(entry));
        for dependency in &crate_.dependencies {
            let is_linked = crates.0.get(dependency).is_some_and(|dependency| dependency.is_linked);
            relations.push(if is_linked {
                relation(&identifier(id), "DEPENDS_ON", &identifier(dependency))
            } else {
                relation(&identifier(dependency), "BUILD_DEPENDENCY_OF", &identifier(id))
            });
        }
    }
    for Library { name, version, license, url } in subject.libraries() {
        packages.push(Value::Object(package(name, &version, Some(license), format!("git+{url}"))));
        relations.push(relation(&command, "STATIC_LINK", &spdx_identifier(name, &version)));
    }
    let (name, version) = root();
    Ok(json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": format!("{name}-{version}"),
        "documentNamespace": format!("{}/spdx/{name}-{version}-{}", env!("CARGO_PKG_REPOSITORY"), subject.uuid()?),
        "creationInfo": {
            "created": subject.time.rfc3339()?,
            "creators": [format!("Tool: cargo-xtask-dist-{version}")],
        },
        "packages": packages,
        "relationships": relations,
    }))
}

/// The crates as cargo-auditable writes them into a binary, for scanners of images: zlib of JSON.
/// <https://github.com/rust-secure-code/cargo-auditable/blob/master/PARSING.md>
pub(super) fn auditable(crates: &Crates) -> anyhow::Result<Vec<u8>> {
    use std::io::Write as _;
    let index: Vec<&Id> = crates.0.keys().collect();
    let packages: anyhow::Result<Vec<Value>> = crates
        .0
        .iter()
        .map(|(id, crate_)| {
            let dependencies: Result<Vec<usize>, _> =
                crate_.dependencies.iter().map(|dependency| index.binary_search(&dependency)).collect();
            let dependencies = dependencies.ok().with_context(|| format!("{} lacks a dependency", reference(id)))?;
            let source = if crate_.checksum.is_some() { "crates.io" } else { "local" };
            let mut package = json!({"name": id.0, "version": id.1, "source": source, "dependencies": dependencies});
            if *id == root() {
                set(&mut package, "root", true);
            }
            if !crate_.is_linked {
                set(&mut package, "kind", "build");
            }
            Ok(package)
        })
        .collect();
    let mut compressed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    compressed.write_all(&serde_json::to_vec(&json!({"packages": packages?}))?)?;
    Ok(compressed.finish()?)
}

#[cfg(test)]
mod tests;
