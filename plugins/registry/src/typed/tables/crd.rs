//! `k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1`, without fields that only the API server writes.

use super::meta::OBJECT_META;
use crate::typed::records;

records! {
    CUSTOM_RESOURCE_COLUMN_DEFINITION {
        "description" ? string, "format" ? string, "jsonPath" ! string, "name" ! string, "priority" ? i32,
        "type" ! string,
    }
    CUSTOM_RESOURCE_CONVERSION { "strategy" ! string, "webhook" * WEBHOOK_CONVERSION }
    CUSTOM_RESOURCE_DEFINITION {
        "apiVersion" ? string, "kind" ? string, "metadata" ~ OBJECT_META, "spec" ! CUSTOM_RESOURCE_DEFINITION_SPEC,
    }
    CUSTOM_RESOURCE_DEFINITION_NAMES {
        "categories" ? [string], "kind" ! string, "listKind" ? string, "plural" ! string, "shortNames" ? [string],
        "singular" ? string,
    }
    CUSTOM_RESOURCE_DEFINITION_SPEC {
        "conversion" * CUSTOM_RESOURCE_CONVERSION, "group" ! string, "names" ! CUSTOM_RESOURCE_DEFINITION_NAMES,
        "preserveUnknownFields" ? bool, "scope" ! string, "versions" + [CUSTOM_RESOURCE_DEFINITION_VERSION],
    }
    CUSTOM_RESOURCE_DEFINITION_VERSION {
        "additionalPrinterColumns" ? [CUSTOM_RESOURCE_COLUMN_DEFINITION], "deprecated" ? bool,
        "deprecationWarning" * string, "name" ! string, "schema" * CUSTOM_RESOURCE_VALIDATION,
        "selectableFields" ? [SELECTABLE_FIELD], "served" ! bool, "storage" ! bool,
        "subresources" * CUSTOM_RESOURCE_SUBRESOURCES,
    }
    CUSTOM_RESOURCE_SUBRESOURCES {
        "scale" * CUSTOM_RESOURCE_SUBRESOURCE_SCALE, "status" * CUSTOM_RESOURCE_SUBRESOURCE_STATUS,
    }
    CUSTOM_RESOURCE_SUBRESOURCE_SCALE {
        "labelSelectorPath" * string, "specReplicasPath" ! string, "statusReplicasPath" ! string,
    }
    CUSTOM_RESOURCE_SUBRESOURCE_STATUS {}
    CUSTOM_RESOURCE_VALIDATION { "openAPIV3Schema" * JSON_SCHEMA_PROPS }
    EXTERNAL_DOCUMENTATION { "description" ? string, "url" ? string }
    JSON_SCHEMA_PROPS {
        "$ref" * string, "$schema" ? string, "additionalItems" * schema_or_bool,
        "additionalProperties" * schema_or_bool, "allOf" ? [JSON_SCHEMA_PROPS], "anyOf" ? [JSON_SCHEMA_PROPS],
        "default" * any, "definitions" ? {JSON_SCHEMA_PROPS}, "dependencies" ? {schema_or_strings},
        "description" ? string, "enum" ? [any], "example" * any, "exclusiveMaximum" ? bool, "exclusiveMinimum" ? bool,
        "externalDocs" * EXTERNAL_DOCUMENTATION, "format" ? string, "id" ? string, "items" * schema_or_list,
        "maxItems" * i64, "maxLength" * i64, "maxProperties" * i64, "maximum" * f64, "minItems" * i64,
        "minLength" * i64, "minProperties" * i64, "minimum" * f64, "multipleOf" * f64, "not" * JSON_SCHEMA_PROPS,
        "nullable" ? bool, "oneOf" ? [JSON_SCHEMA_PROPS], "pattern" ? string,
        "patternProperties" ? {JSON_SCHEMA_PROPS}, "properties" ? {JSON_SCHEMA_PROPS}, "required" ? [string],
        "title" ? string, "type" ? string, "uniqueItems" ? bool, "x-kubernetes-embedded-resource" ? bool,
        "x-kubernetes-int-or-string" ? bool, "x-kubernetes-list-map-keys" ? [string],
        "x-kubernetes-list-type" * string, "x-kubernetes-map-type" * string,
        "x-kubernetes-preserve-unknown-fields" * bool, "x-kubernetes-validations" ? [VALIDATION_RULE],
    }
    SELECTABLE_FIELD { "jsonPath" ! string }
    SERVICE_REFERENCE { "name" ! string, "namespace" ! string, "path" * string, "port" * i32 }
    VALIDATION_RULE {
        "fieldPath" ? string, "message" ? string, "messageExpression" ? string, "optionalOldSelf" * bool,
        "reason" * string, "rule" ! string,
    }
    WEBHOOK_CLIENT_CONFIG { "caBundle" ? bytes, "service" * SERVICE_REFERENCE, "url" * string }
    WEBHOOK_CONVERSION { "clientConfig" * WEBHOOK_CLIENT_CONFIG, "conversionReviewVersions" + [string] }
}
