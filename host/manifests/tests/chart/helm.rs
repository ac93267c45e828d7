//! What Helm does with a chart, as far as this one needs it: the engine of templates, a few functions, merging of values, and their schema.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use gotmpl::{Template, TemplateError, Value as Data};
use jsonschema::Validator;
use serde_json::{Map, Value};

/// The files of a chart by path.
pub(super) type Chart = BTreeMap<String, String>;

/// The schema of the values, which every chart has.
pub(super) static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(&super::defaults()["values.schema.json"]).unwrap();
    jsonschema::validator_for(&schema).unwrap()
});

/// The objects of a release, as `helm template`.
///
/// # Errors
/// The values do not fit the schema, or a template refuses them.
pub(super) fn template(chart: &Chart, namespace: &str, values: &Value) -> Result<Vec<Value>, String> {
    let mut merged: Value = serde_saphyr::from_str(&chart["values.yaml"]).unwrap();
    merge(&mut merged, values);
    SCHEMA.validate(&merged).map_err(|error| format!("{}: {error}", error.instance_path()))?;
    let about: Value = serde_saphyr::from_str(&chart["Chart.yaml"]).unwrap();
    // In templates, the fields of Chart.yaml begin with capitals.
    let about = serde_json::json!({"AppVersion": about["appVersion"]});
    let data = serde_json::json!({"Values": merged, "Chart": about, "Release": {"Namespace": namespace}});
    let mut objects = Vec::new();
    for (path, text) in chart.iter().filter(|(path, _)| path.starts_with("templates/")) {
        let rendered = execute(text, &data).map_err(|error| format!("{path}: {error}"))?;
        if !path.ends_with("NOTES.txt") {
            let documents: Vec<Value> =
                serde_saphyr::from_multiple(&rendered).unwrap_or_else(|error| panic!("{path}: {error}\n{rendered}"));
            objects.extend(documents.into_iter().filter(|document| !document.is_null()));
        }
    }
    Ok(objects)
}

/// Merges values over defaults: maps are merged, null removes, and everything else replaces.
fn merge(defaults: &mut Value, values: &Value) {
    match (defaults, values) {
        (Value::Object(defaults), Value::Object(values)) => {
            for (key, value) in values {
                if value.is_null() {
                    defaults.remove(key);
                } else {
                    merge(defaults.entry(key).or_insert(Value::Null), value);
                }
            }
        }
        (defaults, values) => *defaults = values.clone(),
    }
}

/// The text of a template.
pub(super) fn execute(text: &str, data: &Value) -> Result<String, String> {
    let template = Template::new("chart")
        .func("contains", |args| Ok(Data::Bool(string(args, 1)?.contains(string(args, 0)?))))
        .func("fail", |args| Err(TemplateError::Exec(string(args, 0)?.to_owned())))
        .func("hasPrefix", |args| Ok(Data::Bool(string(args, 1)?.starts_with(string(args, 0)?))))
        .func("int", |args| {
            let number = args.first().and_then(|value| value.as_int().or(value.as_float().map(whole)));
            Ok(Data::Int(number.unwrap_or_default()))
        })
        .func("join", |args| {
            let Some(Data::List(items)) = args.get(1) else { return Err(TemplateError::Exec("not a list".to_owned())) };
            let items: Vec<String> = items.iter().map(ToString::to_string).collect();
            Ok(Data::String(items.join(string(args, 0)?).into()))
        })
        .func("kindIs", |args| {
            let kind = match args.get(1) {
                None | Some(Data::Nil) => "invalid",
                Some(Data::Bool(_)) => "bool",
                Some(_) => "other",
            };
            Ok(Data::Bool(string(args, 0)? == kind))
        })
        .func("nindent", |args| {
            let spaces = usize::try_from(args[0].as_int().unwrap()).unwrap();
            Ok(Data::String(format!("\n{}", indented(string(args, 1)?, spaces)).into()))
        })
        .func("quote", |args| Ok(Data::String(format!("{:?}", args[0].to_string()).into())))
        .func("toString", |args| Ok(Data::String(args[0].to_string().into())))
        .func("toYaml", |args| {
            let text = serde_saphyr::to_string(&json(&args[0])).unwrap();
            Ok(Data::String(text.trim_end().into()))
        });
    let template = template.parse(text).map_err(|error| error.to_string())?;
    template.execute_to_string(&value(data)).map_err(|error| error.to_string())
}

fn indented(text: &str, spaces: usize) -> String {
    text.lines().map(|line| format!("{}{line}", " ".repeat(spaces))).collect::<Vec<_>>().join("\n")
}

fn string(args: &[Data], index: usize) -> Result<&str, TemplateError> {
    args.get(index).and_then(Data::as_str).ok_or_else(|| TemplateError::Exec(format!("argument {index} is not text")))
}

#[expect(clippy::cast_possible_truncation, reason = "as Helm does")]
fn whole(number: f64) -> i64 {
    number as i64
}

/// Data of a template. All numbers of YAML are floats, as in Helm.
fn value(value: &Value) -> Data {
    match value {
        Value::Null => Data::Nil,
        Value::Bool(value) => Data::Bool(*value),
        Value::Number(number) => Data::Float(number.as_f64().unwrap()),
        Value::String(text) => Data::String(text.as_str().into()),
        Value::Array(items) => Data::List(items.iter().map(self::value).collect()),
        Value::Object(members) => {
            let members = members.iter().map(|(key, member)| (key.as_str().into(), self::value(member)));
            Data::Map(Arc::new(members.collect()))
        }
    }
}

fn json(data: &Data) -> Value {
    match data {
        Data::Bool(value) => Value::Bool(*value),
        Data::Int(number) => (*number).into(),
        Data::Float(number) => (*number).into(),
        Data::String(text) => Value::String(text.to_string()),
        Data::List(items) => items.iter().map(json).collect(),
        Data::Map(members) => {
            Value::Object(members.iter().map(|(key, member)| (key.to_string(), json(member))).collect::<Map<_, _>>())
        }
        _ => Value::Null,
    }
}
