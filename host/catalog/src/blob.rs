//! From a document to the types of the model.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use chandler_yaml::{Mapping, Node};
use serde::{Deserialize, Serialize};

use crate::{
    Bundle, Channel, ChannelEntry, Deprecation, Deprecations, Package, Problem, Property, Reference, RelatedImage,
    Summary, csv,
    fields::{Fields, Findings},
    model,
};

/// Texts for people are shortened to this many bytes.
const SUMMARY_BYTES: usize = 400;
/// More keywords are not kept.
const KEYWORDS: usize = 32;

/// A blob of one of the known schemas, or of another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::large_enum_variant, reason = "one is in memory at a time")]
pub enum Blob {
    /// `olm.package`.
    Package(Package),
    /// `olm.channel`.
    Channel(Channel),
    /// `olm.bundle`.
    Bundle(Bundle),
    /// `olm.deprecations`.
    Deprecations(Deprecations),
    /// Another schema. It is kept as it is in the file.
    Other,
}

/// Reads the fields of a known schema.
pub(crate) fn read(schema: &str, mapping: &Mapping, findings: &mut Findings<'_>) -> Blob {
    let fields = Fields::new(mapping);
    match schema {
        model::PACKAGE => Blob::Package(package(&fields, findings)),
        model::CHANNEL => Blob::Channel(channel(&fields, findings)),
        model::BUNDLE => Blob::Bundle(bundle(&fields, findings)),
        model::DEPRECATIONS => Blob::Deprecations(deprecations(&fields, findings)),
        _ => Blob::Other,
    }
}

fn package(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Package {
    let name = fields.text("name", findings);
    // Nothing depends on the icon, so that only one of the right type is checked.
    let data = fields.get("icon").and_then(|icon| icon.get("base64data")?.as_str().map(|data| (icon.line, data)));
    if let Some((line, _)) = data.filter(|(_, data)| !is_base64(data)) {
        findings.report(line, Problem::IconInvalid { package: name.to_owned() });
    }
    Package {
        name: name.to_owned(),
        default_channel: fields.text("defaultChannel", findings).to_owned(),
        description: fields.text("description", findings).to_owned(),
        has_icon: fields.get("icon").is_some(),
        properties: properties(fields, findings),
    }
}

/// Whether Go's `base64.StdEncoding` decodes a text: it skips line breaks.
fn is_base64(text: &str) -> bool {
    let text: String = text.chars().filter(|char| !matches!(char, '\r' | '\n')).collect();
    STANDARD.decode(text).is_ok()
}

fn channel(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Channel {
    let mut entries = Vec::new();
    for (line, entry) in fields.objects("entries", findings) {
        let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        entries.push(ChannelEntry {
            name: entry.text("name", findings).to_owned(),
            replaces: optional(entry.text("replaces", findings)),
            skips: entry.texts("skips", findings),
            skip_range: optional(entry.text("skipRange", findings)),
            line: findings.line(line),
        });
    }
    Channel {
        name: fields.text("name", findings).to_owned(),
        package: fields.text("package", findings).to_owned(),
        entries,
        properties: properties(fields, findings),
    }
}

fn bundle(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Bundle {
    let images = fields.objects("relatedImages", findings);
    let related_images = images.into_iter().map(|(_, image)| RelatedImage {
        name: image.text("name", findings).to_owned(),
        image: image.text("image", findings).to_owned(),
    });
    let related_images = related_images.collect();
    Bundle {
        name: fields.text("name", findings).to_owned(),
        package: fields.text("package", findings).to_owned(),
        image: fields.text("image", findings).to_owned(),
        properties: properties(fields, findings),
        related_images,
        summary: summary(fields),
        csv: csv::read(fields),
    }
}

fn deprecations(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Deprecations {
    let mut entries = Vec::new();
    for (line, entry) in fields.objects("entries", findings) {
        let reference = entry.object("reference", findings).map(|it| Reference {
            schema: it.text("schema", findings).to_owned(),
            name: it.text("name", findings).to_owned(),
        });
        entries.push(Deprecation {
            reference: reference.unwrap_or_default(),
            message: entry.text("message", findings).to_owned(),
            line: findings.line(line),
        });
    }
    Deprecations { package: fields.text("package", findings).to_owned(), entries }
}

fn properties(fields: &Fields<'_>, findings: &mut Findings<'_>) -> Vec<Property> {
    let mut properties = Vec::new();
    for (line, property) in fields.objects("properties", findings) {
        let kind = property.text("type", findings).to_owned();
        if kind.is_empty() {
            let message = "a property needs a type".to_owned();
            findings.report(line, Problem::FieldInvalid { field: "properties.type".to_owned(), message });
        }
        let value = property.get("value");
        if value.is_none() {
            let message = "a property needs a value".to_owned();
            findings.report(line, Problem::FieldInvalid { field: "properties.value".to_owned(), message });
        }
        let stays = matches!(&*kind, model::PROPERTY_OBJECT | model::PROPERTY_CSV_METADATA);
        let value = value.filter(|_| !stays).map(Node::to_json);
        properties.push(Property { kind, value, line: findings.line(line) });
    }
    properties
}

/// What people see of a bundle, from the metadata of its ClusterServiceVersion. Nothing depends on it, so that values of wrong
/// types are not reported.
fn summary(fields: &Fields<'_>) -> Option<Summary> {
    let quiet = &mut Findings::new("", 1);
    let properties = fields.objects("properties", quiet);
    let is_metadata = |it: &Fields<'_>| it.text("type", &mut Findings::new("", 1)) == model::PROPERTY_CSV_METADATA;
    let (_, property) = properties.into_iter().find(|(_, property)| is_metadata(property))?;
    let metadata = property.object("value", quiet)?;
    let annotations = metadata.object("annotations", quiet);
    let mut keywords = metadata.texts("keywords", quiet);
    keywords.truncate(KEYWORDS);
    Some(Summary {
        display_name: shortened(metadata.text("displayName", quiet)),
        description: annotations.map(|it| shortened(it.text("description", quiet))).unwrap_or_default(),
        provider: metadata.object("provider", quiet).map(|it| shortened(it.text("name", quiet))).unwrap_or_default(),
        keywords: keywords.iter().map(|it| shortened(it)).collect(),
        min_kube_version: shortened(metadata.text("minKubeVersion", quiet)),
    })
}

fn shortened(text: &str) -> String {
    text.get(..text.floor_char_boundary(SUMMARY_BYTES)).unwrap_or(text).trim().to_owned()
}
