//! The rules for catalogs, checked package by package.
//!
//! The rules come from the operator registry (`opm validate`). It stops at the first kind of problem; this module reports all of
//! them, each with its file and line.

mod graph;

use std::collections::{BTreeMap, BTreeSet};

use chandler_core::{Severity, dns_name, image_name::ImageName};

pub use self::graph::{Head, head};
use crate::{
    Bundle, Channel, Deprecations, Finding, Index, IndexError, Located, PackageBlobs, Place, Problem, Reference, Span,
    model,
};

/// Checks a catalog. Returns at most this many findings.
pub fn catalog(index: &Index, most: usize) -> Result<Vec<Finding>, IndexError> {
    collect(index, most, |_| true)
}

/// Checks a catalog. Returns at most this many errors, and no warnings.
pub fn errors(index: &Index, most: usize) -> Result<Vec<Finding>, IndexError> {
    collect(index, most, |finding| finding.problem.severity() == Severity::Error)
}

fn collect(index: &Index, most: usize, wanted: impl Fn(&Finding) -> bool) -> Result<Vec<Finding>, IndexError> {
    let mut findings = Vec::new();
    for record in index.without_package() {
        let record = record?;
        findings.extend(record.findings()?);
        let field = if record.schema == model::PACKAGE { "name" } else { "package" };
        if matches!(&*record.schema, model::PACKAGE | model::CHANNEL | model::BUNDLE | model::DEPRECATIONS) {
            let message = format!("a blob of schema {} needs it", record.schema);
            findings.push(Finding::new(Problem::FieldInvalid { field: field.to_owned(), message }, record.span.place));
        }
        findings.retain(&wanted);
        if findings.len() >= most {
            break;
        }
    }
    for entry in index.packages() {
        if findings.len() >= most {
            break;
        }
        let name = entry?.name;
        let found =
            index.package(&name)?.iter().flat_map(|blobs| package(&name, blobs)).filter(&wanted).collect::<Vec<_>>();
        findings.extend(found);
    }
    findings.truncate(most);
    Ok(findings)
}

/// Whether a package can be installed from: no finding about it is an error.
pub fn is_usable(findings: &[Finding]) -> bool {
    findings.iter().all(|finding| finding.problem.severity() != Severity::Error)
}

/// Checks a package. The findings are sorted by place.
pub fn package(name: &str, blobs: &PackageBlobs) -> Vec<Finding> {
    let mut check = Check { package: name, findings: blobs.findings.clone() };
    check.package(blobs);
    check.channels(blobs);
    check.bundles(blobs);
    check.versions(blobs);
    check.deprecations(blobs);
    check.findings.sort_by(|one, other| one.place.cmp(&other.place));
    check.findings
}

/// Checks the channels of a package: without an error among the findings, upgrades can be followed. The findings are sorted by place.
pub fn channels(name: &str, blobs: &PackageBlobs) -> Vec<Finding> {
    let mut check = Check { package: name, findings: Vec::new() };
    check.channels(blobs);
    check.findings.sort_by(|one, other| one.place.cmp(&other.place));
    check.findings
}

struct Check<'a> {
    package: &'a str,
    findings: Vec<Finding>,
}

impl Check<'_> {
    fn report(&mut self, place: &Place, problem: Problem) {
        self.findings.push(Finding::new(problem, place.clone()));
    }

    fn report_duplicate(&mut self, problem: Problem, span: &Span, first: &Span) {
        self.findings.push(Finding::new(problem, span.place.clone()).with_other(first.place.clone()));
    }

    fn name(&self) -> String {
        self.package.to_owned()
    }

    fn package(&mut self, blobs: &PackageBlobs) {
        let package = self.name();
        let mut packages = blobs.packages.iter();
        let Some(first) = packages.next() else {
            // Documents of other tools may name packages of another catalog.
            if let Some(place) = first_place(blobs) {
                self.report(&place, Problem::PackageMissing { package });
            }
            return;
        };
        for other in packages {
            self.report_duplicate(Problem::PackageDuplicate { package: package.clone() }, &other.span, &first.span);
        }
        let place = &first.span.place;
        if !dns_name::is_label(self.package) {
            self.report(place, Problem::PackageName { package: package.clone() });
        }
        let default = &first.value.default_channel;
        if blobs.channels.is_empty() {
            self.report(place, Problem::NoChannel { package: package.clone() });
        }
        if default.is_empty() {
            self.report(place, Problem::DefaultChannelMissing { package });
        } else if !blobs.channels.iter().any(|channel| channel.value.name == *default) {
            self.report(place, Problem::DefaultChannelUnknown { package, channel: default.clone() });
        }
    }

    fn channels(&mut self, blobs: &PackageBlobs) {
        let bundles: BTreeSet<&str> = blobs.bundles.iter().map(|bundle| bundle.value.name.as_str()).collect();
        let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
        for Located { value: channel, span } in &blobs.channels {
            if channel.name.is_empty() {
                self.report(&span.place, Problem::ChannelNameMissing { package: self.name() });
            } else if let Some(first) = seen.insert(&channel.name, span) {
                let problem = Problem::ChannelDuplicate { package: self.name(), channel: channel.name.clone() };
                self.report_duplicate(problem, span, first);
            }
            self.entries(channel, span, &bundles);
            for problem in graph::problems(channel) {
                self.report(&span.place, problem);
            }
        }
    }

    fn entries(&mut self, channel: &Channel, span: &Span, bundles: &BTreeSet<&str>) {
        let name = || channel.name.clone();
        if channel.entries.is_empty() {
            self.report(&span.place, Problem::ChannelEmpty { package: self.name(), channel: name() });
        }
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for entry in &channel.entries {
            let place = Place::new(&span.place.file, entry.line);
            if entry.name.is_empty() {
                self.report(&place, Problem::EntryNameMissing { channel: name() });
                continue;
            }
            let text = || entry.name.clone();
            if let Some(first) = seen.insert(&entry.name, entry.line) {
                let finding = Finding::new(Problem::EntryDuplicate { channel: name(), entry: text() }, place.clone());
                self.findings.push(finding.with_other(Place::new(&span.place.file, first)));
            }
            if !bundles.contains(entry.name.as_str()) {
                let problem = Problem::EntryWithoutBundle { package: self.name(), channel: name(), entry: text() };
                self.report(&place, problem);
            }
            if entry.skips.iter().any(String::is_empty) {
                self.report(&place, Problem::SkipEmpty { channel: name(), entry: text() });
            }
            if entry.has_invalid_skip_range() {
                let range = entry.skip_range.clone().unwrap_or_default();
                self.report(&place, Problem::SkipRangeInvalid { channel: name(), entry: text(), range });
            }
        }
    }

    fn bundles(&mut self, blobs: &PackageBlobs) {
        let entries = blobs.channels.iter().flat_map(|channel| &channel.value.entries);
        let entries: BTreeSet<&str> = entries.map(|entry| entry.name.as_str()).collect();
        let mut seen: BTreeMap<&str, &Span> = BTreeMap::new();
        for Located { value: bundle, span } in &blobs.bundles {
            if bundle.name.is_empty() {
                self.report(&span.place, Problem::BundleNameMissing { package: self.name() });
                continue;
            }
            let name = || bundle.name.clone();
            if let Some(first) = seen.insert(&bundle.name, span) {
                let problem = Problem::BundleDuplicate { package: self.name(), bundle: name() };
                self.report_duplicate(problem, span, first);
            }
            if !entries.contains(bundle.name.as_str()) {
                self.report(&span.place, Problem::BundleInNoChannel { bundle: name() });
            }
            if bundle.image.is_empty() && bundle.properties_of(model::PROPERTY_OBJECT).next().is_none() {
                self.report(&span.place, Problem::BundleImageMissing { bundle: name() });
            }
            if !bundle.image.is_empty()
                && let Err(error) = ImageName::parse(&bundle.image)
            {
                self.report(&span.place, Problem::ImageInvalid { bundle: name(), message: error.to_string() });
            }
            self.package_property(bundle, span);
        }
    }

    fn package_property(&mut self, bundle: &Bundle, span: &Span) {
        let lines: Vec<u32> = bundle.properties_of(model::PROPERTY_PACKAGE).map(|property| property.line).collect();
        let name = || bundle.name.clone();
        let place = |line: Option<&u32>| Place::new(&span.place.file, line.copied().unwrap_or(span.place.line));
        let (Some(property), [line]) = (bundle.package_properties().next(), lines.as_slice()) else {
            // The second one is too many.
            let problem = Problem::PackageProperties { bundle: name(), found: lines.len() as u64 };
            return self.report(&place(lines.get(1)), problem);
        };
        if property.package != self.package {
            let problem = Problem::PackageMismatch {
                bundle: name(),
                package: self.name(),
                property: property.package.to_owned(),
            };
            self.report(&place(Some(line)), problem);
        }
        if let Err(error) = bundle.version() {
            self.report(&place(Some(line)), Problem::VersionInvalid { bundle: name(), message: error.to_string() });
        }
    }

    fn versions(&mut self, blobs: &PackageBlobs) {
        let mut by_version: BTreeMap<_, Vec<&Located<Bundle>>> = BTreeMap::new();
        for bundle in &blobs.bundles {
            if let Ok(version) = bundle.value.version() {
                by_version.entry(version).or_default().push(bundle);
            }
        }
        for (version, bundles) in by_version {
            let names: BTreeSet<&str> = bundles.iter().map(|bundle| bundle.value.name.as_str()).collect();
            let ([first, second, ..], 2..) = (bundles.as_slice(), names.len()) else { continue };
            let problem = Problem::VersionDuplicate {
                package: self.name(),
                version: version.to_string(),
                bundles: names.into_iter().map(str::to_owned).collect(),
            };
            self.report_duplicate(problem, &second.span, &first.span);
        }
    }

    fn deprecations(&mut self, blobs: &PackageBlobs) {
        let mut all = blobs.deprecations.iter();
        if let Some(first) = all.next() {
            for other in all {
                let problem = Problem::DeprecationsDuplicate { package: self.name() };
                self.report_duplicate(problem, &other.span, &first.span);
            }
        }
        for Located { value, span } in &blobs.deprecations {
            self.references(value, span, blobs);
        }
    }

    fn references(&mut self, deprecations: &Deprecations, span: &Span, blobs: &PackageBlobs) {
        let mut seen: BTreeMap<(&str, &str), u32> = BTreeMap::new();
        for entry in &deprecations.entries {
            let place = Place::new(&span.place.file, entry.line);
            let Reference { schema, name } = &entry.reference;
            let exists = match schema.as_str() {
                model::PACKAGE => name.is_empty() || name == self.package,
                model::CHANNEL => blobs.channels.iter().any(|channel| channel.value.name == *name),
                model::BUNDLE => blobs.bundles.iter().any(|bundle| bundle.value.name == *name),
                _ => false,
            };
            let (schema, name) = (schema.clone(), name.clone());
            if !exists {
                let (schema, name) = (schema.clone(), name.clone());
                self.report(&place, Problem::DeprecationUnknown { package: self.name(), schema, name });
            }
            if entry.message.is_empty() {
                let (schema, name) = (schema.clone(), name.clone());
                self.report(&place, Problem::DeprecationMessageMissing { schema, name });
            }
            if let Some(first) = seen.insert((&entry.reference.schema, &entry.reference.name), entry.line) {
                let finding = Finding::new(Problem::DeprecationDuplicate { schema, name }, place);
                self.findings.push(finding.with_other(Place::new(&span.place.file, first)));
            }
        }
    }
}

/// The first place that makes use of a package.
fn first_place(blobs: &PackageBlobs) -> Option<Place> {
    let channels = blobs.channels.iter().map(|it| &it.span);
    let bundles = blobs.bundles.iter().map(|it| &it.span);
    let deprecations = blobs.deprecations.iter().map(|it| &it.span);
    channels.chain(bundles).chain(deprecations).map(|span| &span.place).min().cloned()
}

#[cfg(test)]
mod tests;
