//! Which representation of objects a client wants.

use crate::status::Status;

/// The representation of objects in responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Representation {
    /// As they are.
    Object,
    /// As rows of a `meta.k8s.io/v1` `Table`; the version may also be `v1beta1`.
    Table {
        /// Whether the table has the version `v1beta1`.
        beta: bool,
        /// How much of its object a row includes.
        include: IncludeObject,
    },
    /// As `PartialObjectMetadata`: type and metadata only.
    PartialMetadata,
}

/// The `includeObject` parameter of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IncludeObject {
    /// Nothing.
    None,
    /// Type and metadata.
    #[default]
    Metadata,
    /// All.
    Object,
}

/// One element of an `Accept` header.
#[derive(Debug)]
pub struct MediaType<'a> {
    /// Type and subtype, e.g. `application/json`.
    pub essence: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> MediaType<'a> {
    /// The elements of a header, in the client's order; quality values are not weighed, as in kube-apiserver's clients.
    pub fn parse_all(header: &'a str) -> impl Iterator<Item = Self> {
        header.split(',').map(|element| {
            let mut parts = element.split(';').map(str::trim);
            let essence = parts.next().unwrap_or_default();
            let parameters = parts.filter_map(|part| part.split_once('=')).collect();
            Self { essence, parameters }
        })
    }

    /// A parameter.
    pub fn parameter(&self, name: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    /// Whether JSON satisfies this element.
    pub fn is_json(&self) -> bool {
        matches!(self.essence, "application/json" | "application/*" | "*/*" | "")
    }

    /// Whether this element asks for YAML.
    pub fn is_yaml(&self) -> bool {
        self.essence == "application/yaml"
    }

    fn is_written(&self) -> bool {
        self.is_json() || self.is_yaml()
    }
}

/// How a response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// As JSON.
    Json,
    /// As YAML.
    Yaml,
}

/// The first format that a client accepts; JSON where it accepts none of them.
pub fn format(accept: &str) -> Format {
    let wanted = MediaType::parse_all(accept).find(MediaType::is_written);
    if wanted.is_some_and(|media| media.is_yaml()) { Format::Yaml } else { Format::Json }
}

/// Chooses the representation for objects.
///
/// # Errors
/// When nothing that the client accepts can be made.
pub fn representation(accept: &str, include_object: Option<&str>) -> Result<Representation, Status> {
    let include = match include_object {
        Some("None") => IncludeObject::None,
        None | Some("Metadata") => IncludeObject::Metadata,
        Some("Object") => IncludeObject::Object,
        Some(other) => {
            return Err(Status::bad_request(format!(
                "unrecognized includeObject value {other:?}: supported are None, Metadata and Object"
            )));
        }
    };
    for media in MediaType::parse_all(accept).filter(MediaType::is_written) {
        let group = media.parameter("g").unwrap_or("meta.k8s.io");
        let version = media.parameter("v").unwrap_or("v1");
        match (media.parameter("as"), group, version) {
            (None, ..) => return Ok(Representation::Object),
            (Some("Table"), "meta.k8s.io", "v1" | "v1beta1") => {
                return Ok(Representation::Table { beta: version == "v1beta1", include });
            }
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), "meta.k8s.io", "v1" | "v1beta1") => {
                return Ok(Representation::PartialMetadata);
            }
            _ => {}
        }
    }
    let mut message = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml".to_owned();
    if accept.contains("protobuf") {
        message.push_str(" (protobuf is read and not written, see host/devcluster/DIFFERENCES.md)");
    }
    Err(Status::not_acceptable(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acceptable_representation_wins() {
        let table = Representation::Table { beta: false, include: IncludeObject::Metadata };
        let cases = [
            ("", Representation::Object),
            ("application/json", Representation::Object),
            ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", table),
            ("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", Representation::Object),
            ("application/vnd.kubernetes.protobuf,application/json", Representation::Object),
            ("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1", Representation::PartialMetadata),
            ("*/*", Representation::Object),
            ("application/yaml", Representation::Object),
            ("application/yaml;as=Table;v=v1;g=meta.k8s.io", table),
        ];
        for (accept, expected) in cases {
            assert_eq!(representation(accept, None).unwrap(), expected, "{accept}");
        }
        let refused = representation("application/vnd.kubernetes.protobuf", None).unwrap_err();
        assert_eq!(refused.reason, "NotAcceptable");
        assert!(refused.message.contains("DIFFERENCES.md"), "{refused}");
        assert_eq!(format("application/yaml, application/json"), Format::Yaml);
        assert_eq!(format("application/cbor, */*"), Format::Json);
        assert_eq!(format(""), Format::Json);
        assert!(representation("application/json", Some("All")).is_err());
    }
}
