//! Which policies may be stored, as far as their expressions decide; all else is checked by their type
//! ([`schema`](crate::schema)).

use serde_json::Value;

use crate::{
    policies::{
        compile::{Expression, compile},
        model::{PolicySpec, read_spec},
    },
    schema::{FieldError, FieldPath},
};

/// The longest expression for an audit annotation, in bytes.
const ANNOTATION_BYTES: usize = 5 * 1024;

/// Checks the expressions of a policy; `old` is the stored policy of an update. One that does not change is not checked again.
pub fn validate_policy(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    if old.is_some_and(|old| old.get("spec") == object.get("spec")) {
        return Vec::new();
    }
    // Values of a wrong type are reported elsewhere.
    let Ok(spec) = read_spec::<PolicySpec>(object) else { return Vec::new() };
    let compiled = compile(&spec);
    let mut errors = Vec::new();
    let root = FieldPath::Root;
    let path = root.field("spec");
    let mut each = |list: &str, field: &str, expressions: &mut dyn Iterator<Item = (usize, &Expression)>| {
        for (index, expression) in expressions {
            if let Err(error) = &expression.program
                && !expression.text.trim().is_empty()
            {
                let list = path.field(list);
                let item = list.index(index);
                errors.push(FieldError::invalid(&item.field(field), expression.text.as_str(), error.as_str()));
            }
        }
    };
    each("matchConditions", "expression", &mut compiled.conditions.iter().enumerate());
    let variables = compiled.variables.iter().map(|(_, expression)| expression);
    each("variables", "expression", &mut variables.enumerate());
    let validations = || compiled.validations.iter().enumerate();
    each("validations", "expression", &mut validations().map(|(index, found)| (index, &found.expression)));
    let messages = validations().filter_map(|(index, found)| Some((index, found.message_expression.as_ref()?)));
    each("validations", "messageExpression", &mut { messages });
    each("auditAnnotations", "valueExpression", &mut compiled.annotations.iter().enumerate());
    for (index, annotation) in spec.audit_annotations.iter().enumerate() {
        if annotation.value_expression.trim().len() > ANNOTATION_BYTES {
            let list = path.field("auditAnnotations");
            let detail = format!("must not exceed {ANNOTATION_BYTES} bytes in length");
            errors.push(FieldError::required(&list.index(index).field("valueExpression"), detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_expression_is_checked() {
        let object = json!({"spec": {
            "matchConditions": [{"name": "a", "expression": "variables.a"}],
            "variables": [{"name": "a", "expression": "object.a >"}],
            "validations": [
                {"expression": "true"}, {"expression": "object.a", "messageExpression": "authorizer"},
                {"expression": "object.name.matches('(')"}, {"expression": " "},
            ],
            "auditAnnotations": [{"key": "k", "valueExpression": "1"}],
        }});
        let found: Vec<String> = validate_policy(&object, None).iter().map(|error| error.field.clone()).collect();
        assert_eq!(
            found,
            [
                "spec.matchConditions[0].expression",
                "spec.variables[0].expression",
                "spec.validations[1].expression",
                "spec.validations[2].expression",
                "spec.validations[1].messageExpression",
                "spec.auditAnnotations[0].valueExpression",
            ]
        );
        assert_eq!(validate_policy(&object, Some(&object)), []);
    }
}
