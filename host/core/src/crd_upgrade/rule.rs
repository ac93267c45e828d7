//! The rules, with the names that configuration and reports use.

use std::{borrow::Cow, fmt};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Declares the rules with their names in configuration and messages.
macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)+) => {
        /// What a new CRD is checked for.
        ///
        /// The names and meanings come from `sigs.k8s.io/crdify`, which OLM v1 runs. Changes that crdify reports as
        /// `unhandled` have separate rules here, which use the setting of [`Rule::Unhandled`] unless they have their own.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum Rule { $($(#[$doc])* #[serde(rename = $name)] $variant,)+ }

        impl Rule {
            /// Every rule, in the order in which findings are reported.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The name of the rule.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

rules! {
    /// `spec.scope` changed.
    Scope = "scope",
    /// `spec.group` changed.
    Group = "group",
    /// The kind or the plural changed.
    Names = "names",
    /// A version that `status.storedVersions` names was removed.
    StoredVersionRemoval = "storedVersionRemoval",
    /// A version is no longer served.
    ServedVersionRemoval = "servedVersionRemoval",
    /// The conversion webhook was removed.
    Conversion = "conversion",
    /// The status or scale subresource of a version was removed.
    Subresources = "subresources",
    /// A field was removed.
    ExistingFieldRemoval = "existingFieldRemoval",
    /// A type changed.
    Type = "type",
    /// A field became required.
    Required = "required",
    /// A value was removed from an enum, or an enum was added.
    Enum = "enum",
    /// A default was added, changed or removed.
    Default = "default",
    /// Null is allowed, or no longer allowed.
    Nullable = "nullable",
    /// A pattern was added, changed or removed.
    Pattern = "pattern",
    /// The maximum of a number decreased.
    Maximum = "maximum",
    /// The maximum number of items decreased.
    MaxItems = "maxItems",
    /// The maximum length of a string decreased.
    MaxLength = "maxLength",
    /// The maximum number of properties decreased.
    MaxProperties = "maxProperties",
    /// The minimum of a number increased.
    Minimum = "minimum",
    /// The minimum number of items increased.
    MinItems = "minItems",
    /// The minimum length of a string increased.
    MinLength = "minLength",
    /// The minimum number of properties increased.
    MinProperties = "minProperties",
    /// Alternatives of which exactly one must hold were added or removed.
    OneOf = "oneOf",
    /// Documentation changed: descriptions, titles, examples, messages of validation rules.
    Description = "description",
    /// Alternatives of which one must hold were added or removed.
    AnyOf = "anyOf",
    /// Conditions that must all hold were added or removed.
    AllOf = "allOf",
    /// A negated condition changed.
    Not = "not",
    /// A format was added, changed or removed.
    Format = "format",
    /// Rules in CEL (`x-kubernetes-validations`) were added, changed or removed.
    Validations = "validations",
    /// Whether, or as what, fields without a name of their own are accepted.
    AdditionalProperties = "additionalProperties",
    /// Whether unknown fields are kept.
    PreserveUnknownFields = "preserveUnknownFields",
    /// Whether integers and texts are both accepted.
    IntOrString = "intOrString",
    /// Whether a value is a Kubernetes object of its own.
    EmbeddedResource = "embeddedResource",
    /// How lists are merged and what makes their items unique.
    ListType = "listType",
    /// How maps are merged.
    MapType = "mapType",
    /// What a number must be a multiple of.
    MultipleOf = "multipleOf",
    /// Whether the greatest number itself is allowed.
    ExclusiveMaximum = "exclusiveMaximum",
    /// Whether the smallest number itself is allowed.
    ExclusiveMinimum = "exclusiveMinimum",
    /// Whether items of a list may be equal.
    UniqueItems = "uniqueItems",
    /// A change that no other rule covers.
    Unhandled = "unhandled",
    /// A custom resource in the cluster is invalid under the new schema.
    ExistingCustomResources = "existingCustomResources",
}

impl Rule {
    /// The rule whose setting applies if this one has none.
    pub const fn family(self) -> Option<Self> {
        match self {
            Self::AnyOf
            | Self::AllOf
            | Self::Not
            | Self::Format
            | Self::Validations
            | Self::AdditionalProperties
            | Self::PreserveUnknownFields
            | Self::IntOrString
            | Self::EmbeddedResource
            | Self::ListType
            | Self::MapType
            | Self::MultipleOf
            | Self::ExclusiveMaximum
            | Self::ExclusiveMinimum
            | Self::UniqueItems => Some(Self::Unhandled),
            _ => None,
        }
    }

    /// How to resolve a finding of this rule, other than reverting the change of the CRD.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Scope | Self::Group | Self::Names => {
                "the API server refuses this too; a new CRD under another name is needed"
            }
            Self::StoredVersionRemoval => {
                "keep the version, or write every object anew in another version and then take this one out of \
                 status.storedVersions"
            }
            Self::ServedVersionRemoval => "clients that use the version stop working; move them first",
            Self::Conversion => "without a webhook only apiVersion is changed between versions",
            Self::Subresources => "controllers that write the subresource stop working",
            Self::ExistingFieldRemoval | Self::PreserveUnknownFields => {
                "stored values of the field are lost at the next write; move them first"
            }
            Self::ExistingCustomResources => "change or delete these objects first",
            Self::Description => "clients only see other texts",
            _ => {
                "objects or clients that are legal now may be refused, or mean something else; check that none rely on it"
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl JsonSchema for Rule {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = Self::ALL.iter().map(|rule| rule.name()).collect();
        json_schema!({"type": "string", "enum": names})
    }
}
