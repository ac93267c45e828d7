//! A Helm chart: templates of the same files, whose values are the settings.
//!
//! | module | purpose |
//! |---|---|
//! | `templates` | a template for each file of `deploy/` and each CRD |
//! | `deployment`, `edits` | what values change in the objects of the files |
//! | `hole` | an object as the text of a template |
//! | `values`, `schema` | the settings as values, and their schema |
//! | `metadata` | `Chart.yaml`, the notes and the page of the chart |

mod deployment;
mod edits;
mod hole;
mod metadata;
mod schema;
mod templates;
mod values;

use std::collections::BTreeMap;

pub use self::values::values;
use crate::{ManifestsError, Settings};

/// The chart whose default values are these settings: the text of each file by its path in the chart.
///
/// With the release in the namespace of the settings and the value `createNamespace`, its objects equal [`objects`](crate::objects), except
/// for the annotation `helm.sh/resource-policy: keep`.
///
/// # Errors
/// The settings contradict each other.
pub fn chart(settings: &Settings) -> Result<BTreeMap<String, String>, ManifestsError> {
    settings.check()?;
    let mut files = templates::templates()?;
    files.insert("Chart.yaml".to_owned(), metadata::chart(settings)?);
    files.insert("README.md".to_owned(), metadata::readme());
    files.insert("templates/NOTES.txt".to_owned(), metadata::NOTES.to_owned());
    files.insert("values.yaml".to_owned(), values::text(settings)?);
    files.insert("values.schema.json".to_owned(), schema::text()?);
    Ok(files)
}
