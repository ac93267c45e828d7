//! Indexes as the catalogs of the resolver.

use std::{collections::BTreeMap, sync::Arc};

use chandler_core::image_name::ImageName;
use chandler_resolver::{CatalogError, Catalogs, Kind, Package, Source, catalog};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Bundle, Csv, Index, IndexError, PackageBlobs, Property, lint, model};

/// Catalogs with names and priorities, read from their indexes. A package is read when a question leads to it, no other is, and it is
/// kept: make one of these for each question or few, so that memory does not grow with the catalogs.
///
/// A package with a document that cannot be decoded is an error and not left out: a question that leads to it must not be answered as
/// if it were not there. So is one whose channels break the rules for catalogs, except for the mode of OLM v1. Rules of CEL do not see properties whose values stay in the files: manifests and metadata of
/// ClusterServiceVersions.
#[derive(Debug, Default)]
pub struct IndexCatalogs {
    catalogs: BTreeMap<String, (Source, Arc<Index>)>,
    packages: Mutex<Packages>,
}

/// Packages by catalog and name, or `None` if the catalog has no such package.
type Packages = BTreeMap<(String, String), Option<Arc<Package>>>;

impl IndexCatalogs {
    /// No catalogs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a catalog. It replaces one of the same name.
    #[must_use]
    pub fn with(mut self, source: Source, index: Arc<Index>) -> Self {
        self.catalogs.insert(source.name.clone(), (source, index));
        self
    }

    /// The catalogs, for the question.
    pub fn sources(&self) -> Vec<Source> {
        self.catalogs.values().map(|(source, _)| source.clone()).collect()
    }

    /// The indexes by the name of their catalog.
    pub fn indexes(&self) -> impl Iterator<Item = (&str, &Arc<Index>)> {
        self.catalogs.iter().map(|(name, (_, index))| (name.as_str(), index))
    }

    fn index(&self, catalog: &str) -> Result<&Index, CatalogError> {
        let missing = || CatalogError { catalog: catalog.to_owned(), message: "there is no such catalog".to_owned() };
        self.catalogs.get(catalog).map(|(_, index)| &**index).ok_or_else(missing)
    }

    fn read(&self, catalog: &str, name: &str) -> Result<Option<Arc<Package>>, CatalogError> {
        let blobs = self.index(catalog)?.package(name).map_err(|error| unreadable(catalog, &error))?;
        blobs.map(|blobs| package(catalog, name, &blobs).map(Arc::new)).transpose()
    }
}

impl Catalogs for IndexCatalogs {
    fn package(&self, catalog: &str, package: &str) -> Result<Option<Arc<Package>>, CatalogError> {
        let mut packages = self.packages.lock();
        let key = (catalog.to_owned(), package.to_owned());
        if let Some(known) = packages.get(&key) {
            return Ok(known.clone());
        }
        let read = self.read(catalog, package)?;
        packages.insert(key, read.clone());
        Ok(read)
    }

    fn providers(&self, catalog: &str, kind: &Kind) -> Result<Vec<String>, CatalogError> {
        let providers = self.index(catalog)?.providers(&kind.group, &kind.kind, Some(&kind.version));
        let providers = providers.map_err(|error| unreadable(catalog, &error))?;
        let mut packages: Vec<String> = providers.into_iter().map(|provider| provider.package).collect();
        packages.dedup();
        Ok(packages)
    }

    fn packages(&self, catalog: &str) -> Result<Vec<String>, CatalogError> {
        let names: Result<_, IndexError> = self.index(catalog)?.packages().map(|entry| Ok(entry?.name)).collect();
        names.map_err(|error| unreadable(catalog, &error))
    }
}

fn unreadable(catalog: &str, error: &IndexError) -> CatalogError {
    CatalogError { catalog: catalog.to_owned(), message: error.to_string() }
}

/// A package as the resolver reads it.
fn package(catalog: &str, name: &str, blobs: &PackageBlobs) -> Result<Package, CatalogError> {
    if let Some(finding) = blobs.findings.iter().find(|finding| !lint::is_usable(std::slice::from_ref(*finding))) {
        return Err(CatalogError { catalog: catalog.to_owned(), message: format!("package {name:?}: {finding}") });
    }
    let mut metas = Vec::new();
    metas.extend(blobs.packages.iter().map(|it| meta(model::PACKAGE, &it.value)));
    metas.extend(blobs.channels.iter().map(|it| meta(model::CHANNEL, &it.value)));
    metas.extend(blobs.deprecations.iter().map(|it| meta(model::DEPRECATIONS, &it.value)));
    let mut package = Package::from_metas(name, &metas);
    let findings = lint::channels(name, blobs);
    let broken = findings.iter().find(|finding| !lint::is_usable(std::slice::from_ref(*finding)));
    package.fault = broken.map(|finding| format!("package {name:?}: {finding}"));
    for bundle in &blobs.bundles {
        let bundle = candidate(&bundle.value);
        package.bundles.insert(bundle.name.clone(), Arc::new(bundle));
    }
    Ok(package)
}

/// A blob as it is in a catalog.
fn meta(schema: &str, blob: &impl Serialize) -> Value {
    // Types of the model are objects with text keys, which always have a value.
    let mut meta = serde_json::to_value(blob).unwrap_or_default();
    if let Some(fields) = meta.as_object_mut() {
        fields.insert("schema".to_owned(), Value::String(schema.to_owned()));
    }
    meta
}

/// A bundle as the resolver reads it.
pub(crate) fn candidate(bundle: &Bundle) -> catalog::Bundle {
    let property = |it: &Property| it.value.as_ref().map(|value| json!({"type": it.kind, "value": value}));
    let properties = bundle.properties.iter().filter_map(property).collect();
    let csv = bundle.csv.as_ref().map(of_csv);
    let mut candidate = catalog::Bundle::with_csv(&bundle.name, &bundle.image, &bundle.package, properties, csv);
    // A catalog offers images, and nothing else that an installer could take a text for, such as a path of its own machine.
    if !bundle.image.is_empty()
        && let Err(error) = ImageName::parse(&bundle.image)
    {
        candidate.faults.push(format!("its image is not an image reference: {error}"));
    }
    candidate
}

fn of_csv(csv: &Csv) -> catalog::csv::Csv {
    let kinds = |list: &[model::Gvk]| list.iter().map(|it| Kind::new(&it.group, &it.version, &it.kind)).collect();
    let min_kubernetes = Some(csv.min_kube_version.clone()).filter(|text| !text.is_empty());
    catalog::csv::Csv { owned: kinds(&csv.owned), required: kinds(&csv.required), min_kubernetes }
}
