//! The namespaces that bundles are meant for.

use chandler_resolver::version::VersionRelease;

use crate::{Index, IndexError, index_catalogs::candidate};

/// The namespace that the newest bundle of a package with such a wish is meant for; empty if none has one. `None` if the catalog has no
/// such package.
///
/// # Errors
/// The index cannot be read.
pub fn suggested(index: &Index, package: &str) -> Result<Option<String>, IndexError> {
    let bundles = index.bundles(package)?;
    if bundles.is_empty() {
        return Ok(None);
    }
    let mut newest: Option<(VersionRelease, String)> = None;
    for bundle in bundles {
        let suggestion = bundle.value.csv.as_ref().map(|csv| csv.suggested_namespace.clone()).unwrap_or_default();
        let version = candidate(&bundle.value).version.filter(|_| !suggestion.is_empty());
        if let Some(version) = version.filter(|version| newest.as_ref().is_none_or(|(known, _)| known < version)) {
            newest = Some((version, suggestion));
        }
    }
    Ok(Some(newest.map(|(_, suggestion)| suggestion).unwrap_or_default()))
}
