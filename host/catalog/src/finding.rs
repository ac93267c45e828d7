//! What is wrong with a catalog, where, and how to fix it.

use std::fmt;

use chandler_core::{Diagnostic, Location, Related, Severity};
use serde::{Deserialize, Serialize};

/// A line of a file of a catalog.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The path of the file.
    pub file: String,
    /// The line, counted from 1.
    pub line: u32,
}

impl Place {
    /// A place.
    pub fn new(file: impl Into<String>, line: u32) -> Self {
        Self { file: file.into(), line: line.max(1) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl From<&Place> for Location {
    fn from(place: &Place) -> Self {
        Self { path: place.file.clone(), line: Some(place.line), ..Self::default() }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The problem.
    pub problem: Problem,
    /// Where to fix it.
    pub place: Place,
    /// The other place, such as the first of two equal names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<Place>,
}

impl Finding {
    /// A finding.
    pub fn new(problem: Problem, place: Place) -> Self {
        Self { problem, place, other: None }
    }

    /// This finding at another position.
    pub fn with_other(self, other: Place) -> Self {
        Self { other: Some(other), ..self }
    }

    /// The finding as other commands print theirs.
    pub fn diagnostic(&self) -> Diagnostic {
        let related =
            self.other.iter().map(|place| Related { location: place.into(), message: "the other one".to_owned() });
        Diagnostic {
            location: Some((&self.place).into()),
            related: related.collect(),
            help: Some(self.problem.help()),
            ..Diagnostic::new(self.problem.severity(), self.problem.code(), self.problem.to_string())
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// Everything that can be wrong with a catalog. The messages about the update graph come from the operator registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "code", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the messages say what the variants and fields are")]
pub enum Problem {
    #[error("not readable: {message}")]
    Unreadable { message: String },
    #[error("the document is not an object")]
    NotAnObject,
    #[error("several documents without `---` between them")]
    SeveralDocuments,
    #[error("larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("the document has no schema")]
    SchemaMissing,
    #[error("{field} is not valid: {message}")]
    FieldInvalid { field: String, message: String },
    #[error("{message}")]
    Suspicious { message: String },
    #[error("the pattern cannot be read: {message}")]
    Pattern { message: String },
    #[error("all .indexignore files together have more than {patterns} patterns or {bytes} bytes")]
    TooManyPatterns { patterns: usize, bytes: u64 },
    #[error("package {package:?} has no {} blob", crate::model::PACKAGE)]
    PackageMissing { package: String },
    #[error("package {package:?} is defined more than once")]
    PackageDuplicate { package: String },
    #[error("package name {package:?} is not a DNS-1123 label")]
    PackageName { package: String },
    #[error("the icon of package {package:?} is not base64 and is not shown")]
    IconInvalid { package: String },
    #[error("package {package:?} has no default channel")]
    DefaultChannelMissing { package: String },
    #[error("default channel {channel:?} of package {package:?} does not exist")]
    DefaultChannelUnknown { package: String, channel: String },
    #[error("package {package:?} has no channel")]
    NoChannel { package: String },
    #[error("a channel of package {package:?} has no name")]
    ChannelNameMissing { package: String },
    #[error("channel {channel:?} of package {package:?} is defined more than once")]
    ChannelDuplicate { package: String, channel: String },
    #[error("channel {channel:?} of package {package:?} has no entry")]
    ChannelEmpty { package: String, channel: String },
    #[error("an entry of channel {channel:?} has no name")]
    EntryNameMissing { channel: String },
    #[error("channel {channel:?} has entry {entry:?} more than once")]
    EntryDuplicate { channel: String, entry: String },
    #[error("channel {channel:?} has entry {entry:?}, but package {package:?} has no such bundle")]
    EntryWithoutBundle { package: String, channel: String, entry: String },
    #[error("entry {entry:?} of channel {channel:?} skips an empty name")]
    SkipEmpty { channel: String, entry: String },
    #[error(
        "entry {entry:?} of channel {channel:?} has the skipRange {range:?}, which is not a version range and updates nothing"
    )]
    SkipRangeInvalid { channel: String, entry: String, range: String },
    #[error("channel {channel:?}: multiple channel heads found in graph: {}", heads.join(", "))]
    MultipleHeads { channel: String, heads: Vec<String> },
    #[error("channel {channel:?}: no channel head found in graph")]
    NoHead { channel: String },
    #[error("channel {channel:?}: detected cycle in replaces chain of upgrade graph: {}", chain.join(" -> "))]
    Cycle { channel: String, chain: Vec<String> },
    #[error("channel {channel:?} contains one or more stranded bundles: {}", bundles.join(", "))]
    Stranded { channel: String, bundles: Vec<String> },
    #[error("a bundle of package {package:?} has no name")]
    BundleNameMissing { package: String },
    #[error("bundle {bundle:?} of package {package:?} is defined more than once")]
    BundleDuplicate { package: String, bundle: String },
    #[error("bundle {bundle:?} is in no channel")]
    BundleInNoChannel { bundle: String },
    #[error("bundle {bundle:?} has neither an image nor manifests")]
    BundleImageMissing { bundle: String },
    #[error("the image of bundle {bundle:?} is not an image reference: {message}")]
    ImageInvalid { bundle: String, message: String },
    #[error("bundle {bundle:?} has {found} properties of type {}, but must have one", crate::model::PROPERTY_PACKAGE)]
    PackageProperties { bundle: String, found: u64 },
    #[error("bundle {bundle:?} is in package {package:?}, but its property says {property:?}")]
    PackageMismatch { bundle: String, package: String, property: String },
    #[error("bundle {bundle:?}: {message}")]
    VersionInvalid { bundle: String, message: String },
    #[error("bundles {} of package {package:?} have the same version {version}", bundles.join(", "))]
    VersionDuplicate { package: String, version: String, bundles: Vec<String> },
    #[error("package {package:?} has more than one {} blob", crate::model::DEPRECATIONS)]
    DeprecationsDuplicate { package: String },
    #[error("{schema} {name:?} is deprecated more than once")]
    DeprecationDuplicate { schema: String, name: String },
    #[error("{schema} {name:?} is deprecated, but does not exist in package {package:?}")]
    DeprecationUnknown { package: String, schema: String, name: String },
    #[error("the deprecation of {schema} {name:?} has no message")]
    DeprecationMessageMissing { schema: String, name: String },
}

impl Problem {
    /// How serious it is.
    pub fn severity(&self) -> Severity {
        match self {
            Self::Suspicious { .. } | Self::SkipRangeInvalid { .. } | Self::IconInvalid { .. } => Severity::Warning,
            _ => Severity::Error,
        }
    }

    /// The stable code, with which serialized findings begin.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "Unreadable",
            Self::NotAnObject => "NotAnObject",
            Self::SeveralDocuments => "SeveralDocuments",
            Self::TooLarge { .. } => "TooLarge",
            Self::SchemaMissing => "SchemaMissing",
            Self::FieldInvalid { .. } => "FieldInvalid",
            Self::Suspicious { .. } => "Suspicious",
            Self::Pattern { .. } => "Pattern",
            Self::TooManyPatterns { .. } => "TooManyPatterns",
            Self::PackageMissing { .. } => "PackageMissing",
            Self::PackageDuplicate { .. } => "PackageDuplicate",
            Self::PackageName { .. } => "PackageName",
            Self::IconInvalid { .. } => "IconInvalid",
            Self::DefaultChannelMissing { .. } => "DefaultChannelMissing",
            Self::DefaultChannelUnknown { .. } => "DefaultChannelUnknown",
            Self::NoChannel { .. } => "NoChannel",
            Self::ChannelNameMissing { .. } => "ChannelNameMissing",
            Self::ChannelDuplicate { .. } => "ChannelDuplicate",
            Self::ChannelEmpty { .. } => "ChannelEmpty",
            Self::EntryNameMissing { .. } => "EntryNameMissing",
            Self::EntryDuplicate { .. } => "EntryDuplicate",
            Self::EntryWithoutBundle { .. } => "EntryWithoutBundle",
            Self::SkipEmpty { .. } => "SkipEmpty",
            Self::SkipRangeInvalid { .. } => "SkipRangeInvalid",
            Self::MultipleHeads { .. } => "MultipleHeads",
            Self::NoHead { .. } => "NoHead",
            Self::Cycle { .. } => "Cycle",
            Self::Stranded { .. } => "Stranded",
            Self::BundleNameMissing { .. } => "BundleNameMissing",
            Self::BundleDuplicate { .. } => "BundleDuplicate",
            Self::BundleInNoChannel { .. } => "BundleInNoChannel",
            Self::BundleImageMissing { .. } => "BundleImageMissing",
            Self::ImageInvalid { .. } => "ImageInvalid",
            Self::PackageProperties { .. } => "PackageProperties",
            Self::PackageMismatch { .. } => "PackageMismatch",
            Self::VersionInvalid { .. } => "VersionInvalid",
            Self::VersionDuplicate { .. } => "VersionDuplicate",
            Self::DeprecationsDuplicate { .. } => "DeprecationsDuplicate",
            Self::DeprecationDuplicate { .. } => "DeprecationDuplicate",
            Self::DeprecationUnknown { .. } => "DeprecationUnknown",
            Self::DeprecationMessageMissing { .. } => "DeprecationMessageMissing",
        }
    }

    /// How to fix it.
    pub fn help(&self) -> String {
        match self {
            Self::Unreadable { .. } => {
                "fix the syntax, or list the file in .indexignore if it is not part of the catalog"
            }
            Self::NotAnObject => "write an object with a schema, or list the file in .indexignore",
            Self::SeveralDocuments => "separate the documents with a line `---`",
            Self::TooLarge { .. } => "move manifests out of the catalog into bundle images",
            Self::SchemaMissing => "add the field `schema`, or list the file in .indexignore",
            Self::FieldInvalid { .. } => "fix the value",
            Self::Suspicious { .. } => "keep one of the keys",
            Self::Pattern { .. } => "write the pattern as in .gitignore",
            Self::TooManyPatterns { .. } => "list directories and patterns such as *.md instead of single files",
            Self::PackageMissing { .. } => {
                "add a blob of schema olm.package with this name, or fix the field `package`"
            }
            Self::PackageDuplicate { .. } => "keep one of the olm.package blobs",
            Self::PackageName { .. } => {
                "use at most 63 lower-case letters, digits and `-`, with a letter or digit at both ends"
            }
            Self::IconInvalid { .. } => "write the output of `base64 -w0 FILE` as `icon.base64data`",
            Self::DefaultChannelMissing { .. } => "set `defaultChannel` to one of the channels",
            Self::DefaultChannelUnknown { .. } => "add the channel, or set `defaultChannel` to one of the channels",
            Self::NoChannel { .. } => "add a blob of schema olm.channel",
            Self::ChannelNameMissing { .. } | Self::EntryNameMissing { .. } | Self::BundleNameMissing { .. } => {
                "set the field `name`"
            }
            Self::ChannelDuplicate { .. } | Self::DeprecationsDuplicate { .. } => {
                "move the entries to one of the blobs, and remove the other"
            }
            Self::ChannelEmpty { .. } => "add entries, or remove the channel",
            Self::EntryDuplicate { .. } | Self::DeprecationDuplicate { .. } => "keep one of the entries",
            Self::EntryWithoutBundle { .. } => "add the olm.bundle blob, or remove the entry",
            Self::SkipEmpty { .. } => "remove the empty name from `skips`",
            Self::SkipRangeInvalid { .. } => {
                "write full versions without a leading v, with spaces between the comparisons: >=1.0.0 <1.1.0"
            }
            Self::MultipleHeads { .. } => "let one of them replace or skip the others",
            Self::NoHead { .. } => "remove the `replaces` or `skips` that names the newest entry",
            Self::Cycle { .. } => "remove one of the `replaces` of the cycle",
            Self::Stranded { .. } => "name them in a `replaces` of the chain below the head, or in `skips`",
            Self::BundleDuplicate { .. } => "keep one of the olm.bundle blobs",
            Self::BundleInNoChannel { .. } => "add an entry to a channel, or remove the bundle",
            Self::BundleImageMissing { .. } => "set the field `image`",
            Self::ImageInvalid { .. } => {
                "write the registry, the repository and a tag or a digest: quay.io/example/bundle:v1"
            }
            Self::PackageProperties { .. } => "keep one property of type olm.package, with `packageName` and `version`",
            Self::PackageMismatch { .. } => "make the field `package` and `packageName` of the property equal",
            Self::VersionInvalid { .. } => "write the version as in semver.org, such as 1.2.3",
            Self::VersionDuplicate { .. } => "give each bundle its own version, or add build metadata such as 1.2.3+2",
            Self::DeprecationUnknown { .. } => "fix the reference, or remove the entry",
            Self::DeprecationMessageMissing { .. } => "tell users in `message` what to use instead",
        }
        .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_the_serialized_one() {
        let finding = Finding::new(Problem::NoHead { channel: "stable".into() }, Place::new("a.yaml", 3));
        let text = serde_json::to_value(&finding).unwrap();
        assert_eq!(text["problem"]["code"], finding.problem.code());
        assert_eq!(serde_json::from_value::<Finding>(text).unwrap(), finding);
        assert_eq!(
            finding.diagnostic().to_string(),
            "a.yaml:3: channel \"stable\": no channel head found in graph \
             (help: remove the `replaces` or `skips` that names the newest entry)"
        );
    }
}
