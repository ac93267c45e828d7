//! `k8s.io/apimachinery/pkg/apis/meta/v1`.

use crate::typed::records;

records! {
    GROUP_VERSION_KIND { "group" ! string, "kind" ! string, "version" ! string }
    LABEL_SELECTOR { "matchExpressions" ? [LABEL_SELECTOR_REQUIREMENT], "matchLabels" ? {string} }
    LABEL_SELECTOR_REQUIREMENT { "key" ! string, "operator" ! string, "values" ? [string] }
    MANAGED_FIELDS_ENTRY {
        "apiVersion" ? string, "fieldsType" ? string, "fieldsV1" * any, "manager" ? string, "operation" ? string,
        "subresource" ? string, "time" * time,
    }
    METADATA_ONLY_OBJECT { "apiVersion" ? string, "kind" ? string, "metadata" * OBJECT_META }
    OBJECT_META {
        "annotations" ? {string}, "creationTimestamp" * time, "deletionGracePeriodSeconds" * i64,
        "deletionTimestamp" * time, "finalizers" ? [string], "generateName" ? string, "generation" ? i64,
        "labels" ? {string}, "managedFields" ? [MANAGED_FIELDS_ENTRY], "name" ? string, "namespace" ? string,
        "ownerReferences" ? [OWNER_REFERENCE], "resourceVersion" ? string, "selfLink" ? string, "uid" ? string,
    }
    OWNER_REFERENCE {
        "apiVersion" ! string, "blockOwnerDeletion" * bool, "controller" * bool, "kind" ! string, "name" ! string,
        "uid" ! string,
    }
}
