//! Schemas that are rejected, with the path of the error.

use serde_json::{Value, json};

use crate::support::{
    Answer, MERGE, Scope, cases,
    objects::{self, CRDS},
};

cases! {
    "3.18" a_schema_is_required;
    "3.18" every_node_has_a_type;
    "3.18" logical_junctors_do_not_define_structure: differs("of several mistakes below anyOf others are named");
    "3.18" forbidden_parts_of_json_schema;
    "3.18" list_types_match_their_items: differs("a list of map keys without a list type is refused in other words");
    "3.18" defaults_match_their_schema: differs("fields of a default that the schema does not know are dropped");
    "3.18" metadata_is_not_restricted: differs("a schema of metadata other than name and generateName is accepted and ignored");
    "3.18" names_are_consistent;
    "3.18" exactly_one_version_is_stored;
    "3.18" rules_that_do_not_compile_are_refused: differs("the types of rules are not checked before they run");
    "3.18" rules_that_cost_too_much_are_refused: differs("the cost of rules is not estimated");
    "3.18" identity_of_a_crd_is_immutable;
    "3.18" columns_and_selectable_fields_are_checked;
    "3.18" scale_paths_are_checked;
}

/// The path of the schema of a CRD with one version in messages.
const SCHEMA: &str = "spec.validation.openAPIV3Schema";

async fn refused_schema(scope: &Scope, spec: Value) -> Answer {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    refused(scope, &objects::crd(&scope.group(), schema)).await
}

async fn refused(scope: &Scope, crd: &Value) -> Answer {
    let answer = scope.http().post(CRDS, &scope.mark(crd.clone())).await;
    if answer.status < 300 {
        scope.remove_later(format!("{CRDS}/{}", objects::name(crd)));
    }
    answer
}

fn object(properties: Value) -> Value {
    json!({"type": "object", "properties": properties})
}

async fn a_schema_is_required(scope: &Scope) {
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("schema");
    let cause = refused(scope, &crd).await.invalid("spec.versions[0].schema.openAPIV3Schema");
    assert_eq!(cause["reason"], "FieldValueRequired");
}

async fn every_node_has_a_type(scope: &Scope) {
    let cause = refused_schema(scope, object(json!({"a": {"description": "no type"}})))
        .await
        .invalid(&format!("{SCHEMA}.properties[spec].properties[a].type"));
    assert_eq!(cause["message"], "Required value: must not be empty for specified object fields");
    let cause = refused_schema(scope, object(json!({"a": {"type": "array"}})))
        .await
        .invalid(&format!("{SCHEMA}.properties[spec].properties[a].items"));
    assert_eq!(cause["reason"], "FieldValueRequired");
    refused_schema(scope, object(json!({"a": {"type": "array", "items": {}}})))
        .await
        .invalid(&format!("{SCHEMA}.properties[spec].properties[a].items.type"));
    refused(scope, &objects::crd(&scope.group(), json!({"type": "string"}))).await.invalid(&format!("{SCHEMA}.type"));
}

async fn logical_junctors_do_not_define_structure(scope: &Scope) {
    let spec = json!({"type": "object", "anyOf": [{"properties": {"a": {"type": "string"}}}]});
    let answer = refused_schema(scope, spec).await;
    answer.invalid(&format!("{SCHEMA}.properties[spec].anyOf[0].properties[a].type"));
}

async fn forbidden_parts_of_json_schema(scope: &Scope) {
    for (spec, field) in [
        (json!({"type": "object", "$ref": "#/definitions/x"}), "$ref"),
        (json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}), "uniqueItems"),
    ] {
        let answer = refused_schema(scope, spec.clone()).await;
        answer.invalid(&format!("{SCHEMA}.properties[spec].{field}"));
    }
}

async fn list_types_match_their_items(scope: &Scope) {
    let items = object(json!({"name": {"type": "string"}}));
    for (list, field) in [
        (json!({"type": "array", "items": items, "x-kubernetes-list-type": "map"}), "x-kubernetes-list-map-keys"),
        (json!({"type": "array", "items": items, "x-kubernetes-list-type": "bag"}), "x-kubernetes-list-type"),
        (json!({"type": "array", "items": items, "x-kubernetes-list-map-keys": ["name"]}), "x-kubernetes-list-type"),
        (
            json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["none"]}),
            "x-kubernetes-list-map-keys",
        ),
        (
            // A key that is neither required nor has a default.
            json!({"type": "array", "items": items, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
            "items.properties[name].default",
        ),
    ] {
        let answer = refused_schema(scope, object(json!({"list": list}))).await;
        answer.invalid(&format!("{SCHEMA}.properties[spec].properties[list].{field}"));
    }
}

async fn defaults_match_their_schema(scope: &Scope) {
    let spec = object(json!({"size": {"type": "integer", "minimum": 1, "default": 0}}));
    refused_schema(scope, spec).await.invalid(&format!("{SCHEMA}.properties[spec].properties[size].default"));
    let spec = object(json!({"size": {"type": "integer", "default": "three"}}));
    refused_schema(scope, spec).await.invalid(&format!("{SCHEMA}.properties[spec].properties[size].default"));
    let spec = object(json!({"a": {"type": "object", "default": {"unknown": 1}}}));
    refused_schema(scope, spec).await.invalid(&format!("{SCHEMA}.properties[spec].properties[a].default"));
}

async fn metadata_is_not_restricted(scope: &Scope) {
    let metadata = object(json!({"labels": {"type": "object"}}));
    let schema = object(json!({"metadata": metadata}));
    let answer = refused(scope, &objects::crd(&scope.group(), schema)).await;
    answer.invalid(&format!("{SCHEMA}.properties[metadata]"));
    let name = object(json!({"name": {"type": "string", "maxLength": 5}}));
    let things = scope.create_widget_crd(object(json!({"metadata": name}))).await;
    things.create(&scope.own_widget("short", json!({}))).await.is(201);
    things.create(&scope.own_widget("too-long", json!({}))).await.invalid("metadata.name");
}

async fn names_are_consistent(scope: &Scope) {
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["metadata"]["name"] = "something.else.example.com".into();
    refused(scope, &crd).await.invalid("metadata.name");
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["spec"]["names"]["plural"] = "Widgets".into();
    refused(scope, &crd).await.invalid("spec.names.plural");
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["spec"]["scope"] = "Galaxy".into();
    assert_eq!(refused(scope, &crd).await.invalid("spec.scope")["reason"], "FieldValueNotSupported");
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["spec"]["group"] = "".into();
    refused(scope, &crd).await.invalid("spec.group");
    let protected = objects::crd("things.k8s.io", json!({"type": "object"}));
    refused(scope, &protected).await.invalid("metadata.annotations[api-approved.kubernetes.io]");
}

async fn exactly_one_version_is_stored(scope: &Scope) {
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["spec"]["versions"][0]["storage"] = false.into();
    refused(scope, &crd).await.invalid("spec.versions");
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    let mut again = crd["spec"]["versions"][0].clone();
    again["name"] = "v2".into();
    crd["spec"]["versions"].as_array_mut().unwrap().push(again);
    refused(scope, &crd).await.invalid("spec.versions");
    crd["spec"]["versions"] = json!([]);
    refused(scope, &crd).await.invalid("spec.versions");
}

async fn rules_that_do_not_compile_are_refused(scope: &Scope) {
    let field = format!("{SCHEMA}.properties[spec].x-kubernetes-validations[0].rule");
    for rule in ["self.size >", "self.none == 1", "self.size == 'text'", "size > 1", "self.size", "oldSelf.size.foo()"]
    {
        let mut spec = object(json!({"size": {"type": "integer"}}));
        spec["x-kubernetes-validations"] = json!([{"rule": rule}]);
        let answer = refused_schema(scope, spec).await;
        assert_eq!(answer.status, 422, "{rule}: {}", answer.text);
        answer.invalid(&field);
    }
    let mut spec = object(json!({"size": {"type": "integer"}}));
    spec["x-kubernetes-validations"] = json!([{"rule": "self.size > 1", "messageExpression": "self.size"}]);
    refused_schema(scope, spec.clone())
        .await
        .invalid(&format!("{SCHEMA}.properties[spec].x-kubernetes-validations[0].messageExpression"));
    spec["x-kubernetes-validations"] = json!([{"rule": "self.size > 1", "fieldPath": ".none"}]);
    refused_schema(scope, spec.clone())
        .await
        .invalid(&format!("{SCHEMA}.properties[spec].x-kubernetes-validations[0].fieldPath"));
    spec["x-kubernetes-validations"] = json!([{"rule": "self.size > 1", "reason": "BecauseISaySo"}]);
    refused_schema(scope, spec).await.invalid(&format!("{SCHEMA}.properties[spec].x-kubernetes-validations[0].reason"));
}

async fn rules_that_cost_too_much_are_refused(scope: &Scope) {
    // Without a limit on the lists, every pair of items of every list counts.
    let list = json!({"type": "array", "items": {"type": "array", "items": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x.all(a, y.exists(b, a == b))))"}]});
    let status = refused_schema(scope, object(json!({"list": list}))).await.refused(422, "Invalid");
    let causes = status["details"]["causes"].to_string();
    assert!(causes.contains("estimated rule cost exceeds budget by factor of"), "{causes}");
    assert!(causes.contains("properties[list].x-kubernetes-validations[0].rule"), "{causes}");
    let bounded = json!({"type": "array", "maxItems": 5, "items": {"type": "array", "maxItems": 5,
            "items": {"type": "string", "maxLength": 10}},
        "x-kubernetes-validations": [{"rule": "self.all(x, self.all(y, x.all(a, y.exists(b, a == b))))"}]});
    let answer = refused_schema(scope, object(json!({"list": bounded}))).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
}

async fn identity_of_a_crd_is_immutable(scope: &Scope) {
    let crd = objects::crd(&scope.group(), json!({"type": "object"}));
    scope.create_crd(&crd).await;
    let path = format!("{CRDS}/{}", objects::name(&crd));
    let change = |spec: Value| {
        let (http, path) = (scope.http(), path.as_str());
        async move { http.patch(path, MERGE, &json!({"spec": spec})).await }
    };
    change(json!({"group": "other.example.com"})).await.invalid("spec.group");
    change(json!({"names": {"kind": "Gadget", "listKind": "GadgetList"}})).await.invalid("spec.names.kind");
    change(json!({"names": {"plural": "gadgets"}})).await.invalid("spec.names.plural");
    change(json!({"versions": []})).await.invalid("spec.versions");
    change(json!({"names": {"shortNames": ["wdg"]}})).await.is(200);
}

async fn columns_and_selectable_fields_are_checked(scope: &Scope) {
    let spec = object(json!({"size": {"type": "integer"}, "list": {"type": "array", "items": {"type": "string"}}}));
    let schema = object(json!({"spec": spec}));
    let mut crd = objects::crd(&scope.group(), schema);
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "Size", "type": "number?", "jsonPath": "spec.size"}]);
    let answer = refused(scope, &crd).await;
    answer.clone().invalid("spec.additionalPrinterColumns[0].type");
    answer.invalid("spec.additionalPrinterColumns[0].JSONPath");
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("additionalPrinterColumns");
    for path in [".spec.none", ".spec.list", ".metadata.labels"] {
        crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": path}]);
        let answer = refused(scope, &crd).await;
        answer.invalid("spec.selectableFields[0].jsonPath");
    }
}

async fn scale_paths_are_checked(scope: &Scope) {
    let mut crd = objects::crd(&scope.group(), json!({"type": "object"}));
    crd["spec"]["versions"][0]["subresources"]["scale"] =
        json!({"specReplicasPath": "spec.replicas", "statusReplicasPath": ".spec.replicas"});
    let answer = refused(scope, &crd).await;
    answer.clone().invalid("spec.subresources.scale.specReplicasPath");
    answer.invalid("spec.subresources.scale.statusReplicasPath");
}
