//! The packages of a catalog: generated ones, or published ones in the layout of public catalogs, `PACKAGE/VERSION/manifests`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use semver::Version;
use serde_json::{Value, json};

use crate::{
    Error,
    bundles::{Kind, Mix},
};

/// The newest version of a package.
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    content: Content,
}

enum Content {
    Generated(usize, Kind),
    Directory(PathBuf),
}

/// Generated packages, one for each bundle.
pub(crate) fn generated(mix: &Mix) -> Vec<Package> {
    let package = |(number, kind): (usize, &Kind)| Package {
        name: format!("bundle-{number}"),
        version: "1.0.0".to_owned(),
        content: Content::Generated(number, *kind),
    };
    mix.kinds().map(package).collect()
}

/// The first packages below a directory, by name.
pub(crate) fn published(root: &Path, most: usize) -> Result<Vec<Package>, Error> {
    let mut packages = Vec::new();
    for directory in directories(root)? {
        let versions = directories(&directory)?.into_iter().filter(|version| version.join("manifests").is_dir());
        let version = |directory: &PathBuf| Version::parse(file_name(directory).trim_start_matches('v')).ok();
        let newest = versions.filter_map(|it| Some((version(&it)?, it))).max_by(|one, other| one.0.cmp(&other.0));
        if let Some((version, content)) = newest {
            let (name, version) = (file_name(&directory), version.to_string());
            packages.push(Package { name, version, content: Content::Directory(content) });
        }
    }
    packages.sort_by(|one, other| one.name.cmp(&other.name));
    packages.truncate(most);
    Ok(packages)
}

fn directories(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(root).map_err(|error| format!("{}: {error}", root.display()))?;
    Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()).collect())
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

impl Package {
    /// Calls `use_directory` with the directory of the bundle.
    pub(crate) async fn with_directory<T>(
        &self,
        use_directory: impl AsyncFnOnce(&Path) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match &self.content {
            Content::Directory(directory) => use_directory(directory).await,
            Content::Generated(number, kind) => {
                let directory = tempfile::tempdir()?;
                kind.write(*number, directory.path())?;
                use_directory(directory.path()).await
            }
        }
    }

    /// The documents of the package in a catalog, whose bundle has this image.
    pub(crate) fn documents(&self, image: &str) -> Result<Vec<Value>, Error> {
        let Self { name, version, .. } = self;
        let bundle = format!("{name}.v{version}");
        let mut properties = vec![json!({"type": "olm.package", "value": {"packageName": name, "version": version}})];
        if let Content::Directory(directory) = &self.content {
            properties.extend(kinds(directory)?);
        }
        Ok(vec![
            json!({"schema": "olm.package", "name": name, "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": name, "name": "stable", "entries": [{"name": bundle}]}),
            json!({"schema": "olm.bundle", "package": name, "name": bundle, "image": image, "properties": properties}),
        ])
    }
}

/// The kinds that a bundle provides and needs, as its ClusterServiceVersion says.
fn kinds(directory: &Path) -> Result<Vec<Value>, Error> {
    let mut properties = Vec::new();
    for entry in fs::read_dir(directory.join("manifests"))? {
        let Ok(text) = fs::read_to_string(entry?.path()) else { continue };
        let Ok(document) = serde_saphyr::from_str::<Value>(&text) else { continue };
        if document.pointer("/kind").is_none_or(|kind| kind != "ClusterServiceVersion") {
            continue;
        }
        for (list, kind) in [("owned", "olm.gvk"), ("required", "olm.gvk.required")] {
            let crds = document.pointer(&format!("/spec/customresourcedefinitions/{list}"));
            let crds = crds.and_then(Value::as_array).into_iter().flatten();
            properties.extend(crds.filter_map(|crd| {
                let (_, group) = crd.get("name")?.as_str()?.split_once('.')?;
                let value = json!({"group": group, "version": crd.get("version"), "kind": crd.get("kind")});
                Some(json!({"type": kind, "value": value}))
            }));
        }
    }
    Ok(properties)
}
