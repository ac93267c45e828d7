//! Catalogs in memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::{CatalogError, Catalogs, Package, csv::Csv};
use crate::kind::Kind;

/// Catalogs of JSON metas, each parsed when its package is first asked for.
#[derive(Debug, Default)]
pub struct MemoryCatalogs {
    catalogs: BTreeMap<String, Catalog>,
}

#[derive(Debug, Default)]
struct Catalog {
    packages: BTreeMap<String, Lazy>,
    providers: BTreeMap<Kind, BTreeSet<String>>,
}

#[derive(Debug, Default)]
struct Lazy {
    metas: Vec<Value>,
    parsed: OnceLock<Arc<Package>>,
}

impl MemoryCatalogs {
    /// No catalogs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds metas to a catalog.
    #[must_use]
    pub fn with(mut self, catalog: &str, metas: impl IntoIterator<Item = Value>) -> Self {
        let catalog = self.catalogs.entry(catalog.to_owned()).or_default();
        for meta in metas {
            catalog.add(meta);
        }
        self
    }

    /// The names of the catalogs.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.catalogs.keys().map(String::as_str)
    }

    fn catalog(&self, name: &str) -> Result<&Catalog, CatalogError> {
        let missing = || CatalogError { catalog: name.to_owned(), message: "there is no such catalog".to_owned() };
        self.catalogs.get(name).ok_or_else(missing)
    }
}

impl Catalog {
    fn add(&mut self, meta: Value) {
        let text = |field: &str| meta.get(field).and_then(Value::as_str);
        let field = if text("schema") == Some("olm.package") { "name" } else { "package" };
        let Some(package) = text(field).map(str::to_owned) else { return };
        for kind in kinds(&meta) {
            self.providers.entry(kind).or_default().insert(package.clone());
        }
        let lazy = self.packages.entry(package).or_default();
        lazy.parsed = OnceLock::new();
        lazy.metas.push(meta);
    }
}

/// The kinds that the properties of a meta name.
fn kinds(meta: &Value) -> Vec<Kind> {
    let properties = meta.get("properties").and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    for property in properties {
        let Some(value) = property.get("value") else { continue };
        match property.get("type").and_then(Value::as_str) {
            Some("olm.gvk") => found.extend(Kind::read(value)),
            Some("olm.csv.metadata") => found.extend(Csv::of_metadata(value).owned),
            Some("olm.bundle.object") => found.extend(Csv::of_object(value).into_iter().flat_map(|csv| csv.owned)),
            _ => {}
        }
    }
    found
}

impl Catalogs for MemoryCatalogs {
    fn package(&self, catalog: &str, package: &str) -> Result<Option<Arc<Package>>, CatalogError> {
        let lazy = self.catalog(catalog)?.packages.get(package);
        Ok(lazy.map(|lazy| {
            let parse = || Arc::new(Package::from_metas(package, &lazy.metas));
            Arc::clone(lazy.parsed.get_or_init(parse))
        }))
    }

    fn providers(&self, catalog: &str, kind: &Kind) -> Result<Vec<String>, CatalogError> {
        let found = self.catalog(catalog)?.providers.get(kind);
        Ok(found.map(|packages| packages.iter().cloned().collect()).unwrap_or_default())
    }

    fn packages(&self, catalog: &str) -> Result<Vec<String>, CatalogError> {
        Ok(self.catalog(catalog)?.packages.keys().cloned().collect())
    }
}
