//! Which values a setting has in the values of the chart, as JSON Schema.

use serde_json::{Map, Value, json};

/// A subdomain (RFC 1123), such as the name of a Secret.
const NAME: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
/// The value of a label.
const LABEL_VALUE: &str = "([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?";
/// The name in the key of a label.
const LABEL_NAME: &str = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?";
/// A quantity that is not negative.
const QUANTITY: &str = "([0-9]+\\.?[0-9]*|\\.[0-9]+)(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|u)?";
/// A reference of an image: registry, repository, and a tag, a digest or both.
const IMAGE: &str = "[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?(:[0-9]+)?(/[a-z0-9]+((\\.|_|__|-+)[a-z0-9]+)*)+\
                     (:[A-Za-z0-9_][-A-Za-z0-9_.]{0,127})?(@[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,})?";

/// The values of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A reference of an image.
    Image,
    /// The name of an object, or empty.
    Name,
    /// Not a value: the namespace of the release.
    Release,
    /// A number of replicas, or null.
    Replicas,
    /// One of these.
    Choice(&'static [&'static str]),
    /// True or false.
    Boolean,
    /// True, false, or null: as the profile decides.
    BooleanOfProfile,
    /// A quantity.
    Quantity,
    /// A quantity, or empty.
    OptionalQuantity,
    /// A map of labels.
    Labels,
    /// Tolerations, as in a Pod.
    Tolerations,
    /// Options of a command.
    Options,
}

impl Form {
    /// What to write in the chart, where the command takes text with a syntax of its own.
    pub(crate) const fn what(self) -> Option<&'static str> {
        match self {
            Self::Labels => Some("labels of the nodes"),
            Self::Tolerations => Some("tolerations, as in a Pod"),
            Self::Options => Some("further options of `chandler controller`, such as --concurrency=16"),
            _ => None,
        }
    }

    /// The schema of the values.
    pub(crate) fn schema(self) -> Map<String, Value> {
        let whole = |pattern: &str| format!("^{pattern}$");
        let schema = match self {
            Self::Image => json!({"type": "string", "pattern": whole(IMAGE)}),
            Self::Name => json!({"type": "string", "pattern": format!("^({NAME})?$"), "maxLength": 253}),
            Self::Release => json!(false),
            Self::Replicas => json!({"type": ["integer", "null"], "minimum": 1, "maximum": 5}),
            Self::Choice(values) => json!({"type": "string", "enum": values}),
            Self::Boolean => json!({"type": "boolean"}),
            Self::BooleanOfProfile => json!({"type": ["boolean", "null"]}),
            // A number without a suffix is often written without quotes.
            Self::Quantity => json!({"type": ["string", "integer"], "minimum": 0, "pattern": whole(QUANTITY)}),
            Self::OptionalQuantity => {
                json!({"type": ["string", "integer"], "minimum": 0, "pattern": format!("^({QUANTITY})?$")})
            }
            Self::Labels => json!({
                "type": "object",
                "propertyNames": {"pattern": format!("^({NAME}/)?{LABEL_NAME}$")},
                // Null removes a label of the defaults.
                "additionalProperties": {"type": ["string", "null"], "pattern": whole(LABEL_VALUE), "maxLength": 63},
            }),
            Self::Tolerations => json!({"type": "array", "items": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "key": {"type": "string"},
                    "operator": {"type": "string", "enum": ["Equal", "Exists"]},
                    "value": {"type": "string"},
                    "effect": {"type": "string", "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"]},
                    "tolerationSeconds": {"type": "integer"},
                },
            }}),
            Self::Options => {
                json!({"type": "array", "items": {"type": "string", "pattern": "^--[^\\x00-\\x1f\\x7f-\\x9f]*$"}})
            }
        };
        schema.as_object().cloned().unwrap_or_default()
    }
}
