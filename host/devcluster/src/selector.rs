//! Label and field selectors.

use serde_json::Value;

use crate::{registry::Resource, status::Status};

/// Which objects a request is about.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    labels: Vec<LabelRequirement>,
    fields: Vec<FieldRequirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LabelRequirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    Exists,
    Absent,
    In(Vec<String>),
    NotIn(Vec<String>),
    GreaterThan(i64),
    LessThan(i64),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldRequirement {
    path: String,
    value: String,
    equal: bool,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector` for a resource.
    ///
    /// # Errors
    /// When one does not parse, or names a field that the resource cannot be selected by.
    pub fn parse(resource: &Resource, labels: Option<&str>, fields: Option<&str>) -> Result<Self, Status> {
        let labels = parse_labels(labels.unwrap_or_default())
            .map_err(|why| Status::bad_request(format!("unable to parse requirement: {why}")))?;
        let mut fields = parse_fields(fields.unwrap_or_default()).map_err(Status::bad_request)?;
        if let Some(unknown) = fields.iter().find(|field| !selectable(resource, &field.path)) {
            return Err(Status::bad_request(format!("field label not supported: {}", unknown.path)));
        }
        if resource.is_core("events") {
            for field in fields.iter_mut().filter(|field| field.path == "source") {
                "source.component".clone_into(&mut field.path);
            }
        }
        Ok(Self { labels, fields })
    }

    /// Whether everything is selected.
    pub fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that can be selected, when there is one.
    pub fn name(&self) -> Option<&str> {
        let name = self.fields.iter().find(|field| field.equal && field.path == "metadata.name");
        name.map(|field| field.value.as_str())
    }

    /// Whether the place of an object rules it out.
    pub fn excludes_name(&self, name: &str) -> bool {
        self.name().is_some_and(|wanted| wanted != name)
    }

    /// Whether labels alone decide.
    pub fn is_by_labels(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether an object with these labels can be selected.
    pub fn matches_labels<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.labels.iter().all(|requirement| requirement.fits(label(&requirement.key)))
    }

    /// Whether an object is selected.
    pub fn matches(&self, object: &Value) -> bool {
        self.labels.iter().all(|requirement| requirement.matches(object))
            && self.fields.iter().all(|requirement| requirement.matches(object))
    }
}

impl LabelRequirement {
    fn matches(&self, object: &Value) -> bool {
        let labels = object.get("metadata").and_then(|metadata| metadata.get("labels"));
        self.fits(labels.and_then(|labels| labels.get(&self.key)).and_then(Value::as_str))
    }

    fn fits(&self, label: Option<&str>) -> bool {
        match (&self.operator, label) {
            (Operator::Exists, label) => label.is_some(),
            (Operator::Absent, label) => label.is_none(),
            (Operator::In(values), Some(label)) => values.iter().any(|value| value == label),
            (Operator::NotIn(values), Some(label)) => values.iter().all(|value| value != label),
            (Operator::NotIn(_), None) => true,
            (Operator::GreaterThan(bound), Some(label)) => label.parse::<i64>().is_ok_and(|label| label > *bound),
            (Operator::LessThan(bound), Some(label)) => label.parse::<i64>().is_ok_and(|label| label < *bound),
            (Operator::In(_) | Operator::GreaterThan(_) | Operator::LessThan(_), None) => false,
        }
    }
}

impl FieldRequirement {
    fn matches(&self, object: &Value) -> bool {
        let mut value = Some(object);
        for part in self.path.split('.') {
            value = value.and_then(|value| value.get(part));
        }
        let found = match value {
            None | Some(Value::Null) if self.path == "spec.unschedulable" || self.path == "spec.hostNetwork" => {
                "false".to_owned()
            }
            None | Some(Value::Null) if self.path == "status.successful" => "0".to_owned(),
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        (found == self.value) == self.equal
    }
}

/// Which fields a resource can be selected by: `k8s.io/kubernetes/pkg/apis/*/v1/conversion.go`.
fn selectable(resource: &Resource, path: &str) -> bool {
    if path == "metadata.name" || (path == "metadata.namespace") {
        return true;
    }
    if let Some(custom) = &resource.custom {
        return custom.version.selectable_fields.iter().any(|field| field.trim_start_matches('.') == path);
    }
    let kind = resource.kind();
    let fields: &[&str] = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "Event") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("", "Secret") => &["type"],
        ("", "Namespace") => &["status.phase"],
        ("", "Node") => &["spec.unschedulable"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "ReplicationController") | ("apps", "ReplicaSet") => &["status.replicas"],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        _ => &[],
    };
    fields.contains(&path)
}

fn parse_fields(text: &str) -> Result<Vec<FieldRequirement>, String> {
    let requirement = |term: &str| {
        let (path, operator, value) = ["!=", "==", "="]
            .iter()
            .filter_map(|operator| term.find(operator).map(|at| (at, *operator)))
            .min_by_key(|(at, operator)| (*at, std::cmp::Reverse(operator.len())))
            .and_then(|(at, operator)| Some((term.get(..at)?, operator, term.get(at + operator.len()..)?)))
            .ok_or_else(|| format!("invalid selector: {text:?}; can't understand {term:?}"))?;
        Ok(FieldRequirement { path: path.trim().to_owned(), value: value.to_owned(), equal: operator != "!=" })
    };
    text.split(',').filter(|term| !term.is_empty()).map(requirement).collect()
}

/// Splits at commas outside of parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let split = |character: char| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    };
    text.split(split).map(str::trim).filter(|term| !term.is_empty()).collect()
}

fn parse_labels(text: &str) -> Result<Vec<LabelRequirement>, String> {
    if text.trim() == "," {
        return Err(format!("found ',', expected: !, identifier, or 'end of string' in {text:?}"));
    }
    terms(text).into_iter().map(parse_label).collect()
}

fn parse_label(term: &str) -> Result<LabelRequirement, String> {
    let requirement = |key: &str, operator: Operator| {
        let key = key.trim();
        match chandler_devcluster_apimachinery::schema::names::qualified_name(key).first() {
            None => Ok(LabelRequirement { key: key.to_owned(), operator }),
            Some(why) => Err(format!("key: Invalid value: {key:?}: {why}")),
        }
    };
    if let Some(key) = term.strip_prefix('!') {
        return requirement(key, Operator::Absent);
    }
    if let Some((key, values)) = set(term, " notin ") {
        return requirement(key, Operator::NotIn(values?));
    }
    if let Some((key, values)) = set(term, " in ") {
        return requirement(key, Operator::In(values?));
    }
    if let Some((key, value)) = term.split_once("!=") {
        return requirement(key, Operator::NotIn(vec![label_value(value)?]));
    }
    if let Some((key, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return requirement(key, Operator::In(vec![label_value(value)?]));
    }
    let number =
        |value: &str| value.trim().parse().map_err(|_| format!("values: Invalid value: {value:?}: not an integer"));
    if let Some((key, value)) = term.split_once('>') {
        return requirement(key, Operator::GreaterThan(number(value)?));
    }
    if let Some((key, value)) = term.split_once('<') {
        return requirement(key, Operator::LessThan(number(value)?));
    }
    requirement(term, Operator::Exists)
}

fn set<'a>(term: &'a str, operator: &str) -> Option<(&'a str, Result<Vec<String>, String>)> {
    let (key, values) = term.split_once(operator).or_else(|| term.split_once(&format!("{}(", operator.trim_end())))?;
    let values = values.trim().trim_start_matches('(');
    let values = match values.strip_suffix(')') {
        Some(values) => values.split(',').map(label_value).collect(),
        None => Err(format!("found {term:?}, expected: ')'")),
    };
    Some((key, values))
}

fn label_value(value: &str) -> Result<String, String> {
    let value = value.trim();
    match chandler_devcluster_apimachinery::schema::names::label_value(value).first() {
        None => Ok(value.to_owned()),
        Some(why) => Err(format!("values: Invalid value: {value:?}: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    fn selects(labels: &str, fields: &str, object: &Value) -> bool {
        let snapshot = Registry::default().snapshot();
        let pods = snapshot.resource("", "v1", "pods").unwrap();
        Selector::parse(pods, Some(labels), Some(fields)).unwrap().matches(object)
    }

    #[test]
    fn selectors_select() {
        let pod = json!({"metadata": {"name": "p", "labels": {"app": "web", "tier": "front", "n": "5"}}, "spec": {"nodeName": "n1"}});
        let cases = [
            ("", "", true),
            ("app=web", "", true),
            ("app==web,tier=front", "", true),
            ("app!=web", "", false),
            ("missing!=x", "", true),
            ("app in (web, db)", "", true),
            ("app notin (web,db)", "", false),
            ("app", "", true),
            ("!app", "", false),
            ("!missing,app in (db,web),tier", "", true),
            ("n>4", "", true),
            ("n<4", "", false),
            ("app=", "", false),
            ("", "metadata.name=p", true),
            ("", "metadata.name!=p", false),
            ("", "spec.nodeName=n1,metadata.name==p", true),
            ("", "status.phase=Running", false),
            ("", "status.phase=", true),
        ];
        for (labels, fields, expected) in cases {
            assert_eq!(selects(labels, fields, &pod), expected, "labels {labels:?} fields {fields:?}");
        }
    }

    #[test]
    fn faults_are_named() {
        let snapshot = Registry::default().snapshot();
        let pods = snapshot.resource("", "v1", "pods").unwrap();
        for (labels, fields) in [("a in (b", ""), ("-x=1", ""), ("a=b c", ""), ("", "spec.nope=1"), ("", "name")] {
            let status = Selector::parse(pods, Some(labels), Some(fields)).unwrap_err();
            assert_eq!(status.reason, "BadRequest", "labels {labels:?} fields {fields:?}");
        }
    }
}
