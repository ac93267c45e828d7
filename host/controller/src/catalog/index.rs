//! Builds the index of a catalog and checks it. Blocks.

use chandler_api::{CatalogContents, Reason};
use chandler_catalog::{BuildError, Counts, Finding, IndexError, Indexes, Limits, StoreError, lint};
use chandler_core::Content;
use chandler_decisions::problem::Problem;

/// The maximum number of errors that are counted.
const COUNTED: usize = 1_000;
/// The number of errors that a message quotes.
const QUOTED: usize = 5;

/// Builds the index of a catalog, unless it was built before, and checks the catalog. All indexes together use at most `most_bytes`.
pub(super) fn index(indexes: &Indexes, content: &dyn Content, most_bytes: u64) -> Result<CatalogContents, Problem> {
    let limits = Limits::default();
    let index = match indexes.get_or_build(content, &limits) {
        Err(StoreError::Build(BuildError::Finding(_))) => return Err(unreadable(indexes, content, &limits)),
        other => other.map_err(|error| store(&error))?,
    };
    let bytes = indexes.bytes().map_err(|error| store(&error))?;
    if bytes > most_bytes {
        let message =
            format!("the indexes of all catalogs have {bytes} bytes; this controller keeps {most_bytes} at most");
        return Err(Problem::terminal(Reason::ContentLimitExceeded, message));
    }
    let errors = lint::errors(&index, COUNTED).map_err(|error| damaged(&error))?;
    if !errors.is_empty() {
        return Err(invalid(&errors));
    }
    let counts = index.counts().map_err(|error| damaged(&error))?;
    if counts.packages == 0 {
        let message = "it is not a catalog: it has no blob of schema olm.package";
        return Err(Problem::terminal(Reason::CatalogInvalid, message));
    }
    Ok(contents(counts))
}

fn contents(counts: Counts) -> CatalogContents {
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    CatalogContents {
        packages: number(counts.packages),
        channels: number(counts.channels),
        bundles: number(counts.bundles),
    }
}

/// All errors of a catalog with documents that cannot be indexed.
fn unreadable(indexes: &Indexes, content: &dyn Content, limits: &Limits) -> Problem {
    let (index, mut errors) = match indexes.build_for_lint(content, limits, COUNTED) {
        Ok(built) => built,
        Err(error) => return store(&error),
    };
    match lint::errors(&index, COUNTED.saturating_sub(errors.len())) {
        Ok(more) => errors.extend(more),
        Err(error) => return damaged(&error),
    }
    errors.sort_by(|one, other| one.place.cmp(&other.place));
    invalid(&errors)
}

fn invalid(errors: &[Finding]) -> Problem {
    let quoted: Vec<String> = errors.iter().take(QUOTED).map(ToString::to_string).collect();
    let number = match errors.len() {
        1 => "an error".to_owned(),
        COUNTED.. => format!("{COUNTED} errors or more"),
        number => format!("{number} errors"),
    };
    let more = if errors.len() > quoted.len() { "; `chandler catalog lint` prints the others" } else { "" };
    Problem::terminal(Reason::CatalogInvalid, format!("the catalog has {number}: {}{more}", quoted.join("; ")))
}

fn store(error: &StoreError) -> Problem {
    match error {
        StoreError::Build(BuildError::Catalog(error)) => Problem::terminal(Reason::CatalogInvalid, error.to_string()),
        other => Problem::transient(Reason::InternalError, other.to_string()),
    }
}

fn damaged(error: &IndexError) -> Problem {
    Problem::transient(Reason::InternalError, error.to_string())
}

#[cfg(test)]
mod tests {
    use chandler_core::MemoryContent;

    use super::*;

    fn check(files: &[(&str, &str)], most_bytes: u64) -> Result<CatalogContents, Problem> {
        let directory = tempfile::tempdir().expect("a directory");
        let indexes = Indexes::open(directory.path().join("indexes")).expect("a directory");
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()));
        index(&indexes, &MemoryContent::new(files), most_bytes)
    }

    const BELL: &str = "\
schema: olm.package
name: bell
defaultChannel: stable
---
schema: olm.channel
package: bell
name: stable
entries: [{name: bell.v1}]
---
schema: olm.bundle
package: bell
name: bell.v1
image: quay.io/example/bell:v1
properties: [{type: olm.package, value: {packageName: bell, version: 1.0.0}}]
";

    #[test]
    fn what_a_catalog_has_is_counted() {
        let contents = CatalogContents { packages: 1, channels: 1, bundles: 1 };
        assert_eq!(check(&[("bell.yaml", BELL)], u64::MAX), Ok(contents));
    }

    #[test]
    fn messages_name_files_and_lines() {
        let without_bundle = BELL.replace("name: bell.v1\nimage", "name: bell.v2\nimage");
        let channels = (0..7).map(|number| format!("---\nschema: olm.channel\npackage: bell\nname: c{number}\n"));
        let many = channels.collect::<Vec<_>>().concat();
        let message = |files: &[(&str, &str)], most_bytes: u64| match check(files, most_bytes) {
            Err(problem) if problem.terminal => format!("{}: {}", problem.reason, problem.message),
            other => format!("{other:?}"),
        };
        let messages = [
            message(&[("a/bell.yaml", &without_bundle)], u64::MAX),
            message(&[("bell.yaml", BELL), ("note.yaml", "text")], u64::MAX),
            message(&[("bell.yaml", &format!("{BELL}{many}"))], u64::MAX),
            message(&[("README.yaml", "schema: example.com/note\n")], u64::MAX),
            message(&[("bell.yaml", BELL)], 10).replace(|c: char| c.is_ascii_digit(), "0"),
        ];
        insta::assert_snapshot!(messages.join("\n"));
    }
}
