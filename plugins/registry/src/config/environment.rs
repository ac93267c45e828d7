//! `operatorConditionName` and `proxy`: variables that OLM v0 set in the containers of operators.
//!
//! OLM v0 read them from the cluster: an OperatorCondition that it created, and OpenShift's Proxy. A provisioner has no
//! access to either, so they are configured.

use chandler_sdk::Diagnostic;
use chandler_yaml::{Node, pointer_segment};

use super::{finding, unknown_field, value};
use crate::names::subdomain_errors;

/// The members of `proxy` and their variables.
pub(super) const PROXY: [(&str, &str, &str); 3] = [
    ("httpProxy", "HTTP_PROXY", "The proxy for HTTP, as a URL."),
    ("httpsProxy", "HTTPS_PROXY", "The proxy for HTTPS, as a URL."),
    ("noProxy", "NO_PROXY", "Hosts, domains and networks that are accessed without a proxy, comma-separated."),
];

/// The variable with the name of the operator's OperatorCondition.
const CONDITION: &str = "OPERATOR_CONDITION_NAME";

/// A variable with a value.
pub(crate) type Variable = (&'static str, String);

/// The variables of a configuration. No message contains a value: the URL of a proxy may contain a password.
pub(super) fn read(root: &Node) -> Result<Vec<Variable>, Vec<Diagnostic>> {
    let mut variables = Vec::new();
    let mut findings = Vec::new();
    if let Some(node) = value(root, "operatorConditionName") {
        match text(node, "operatorConditionName", "/operatorConditionName") {
            Ok(name) if subdomain_errors(name).is_empty() => variables.push((CONDITION, name.to_owned())),
            Ok(_) => {
                let message = "invalid value for field \"operatorConditionName\": not a name";
                let finding = finding("InvalidValue", message, "/operatorConditionName");
                findings.push(finding.help("name an OperatorCondition, such as harbour-operator.v0.1.0"));
            }
            Err(wrong) => findings.push(*wrong),
        }
    }
    if let Some(node) = value(root, "proxy") {
        proxy(node, &mut variables, &mut findings);
    }
    if findings.is_empty() { Ok(variables) } else { Err(findings) }
}

fn proxy(node: &Node, variables: &mut Vec<Variable>, findings: &mut Vec<Diagnostic>) {
    let Some(entries) = node.as_mapping() else {
        let message = format!("invalid type for field \"proxy\": got {}, want object", node.type_name());
        findings
            .push(finding("InvalidType", message, "/proxy").help("its members are httpProxy, httpsProxy and noProxy"));
        return;
    };
    for key in entries.iter().map(|entry| &*entry.key).filter(|key| PROXY.iter().all(|(member, ..)| member != key)) {
        let unknown = unknown_field(key, &format!("/proxy/{}", pointer_segment(key)));
        findings.push(unknown.help("the members of proxy are httpProxy, httpsProxy and noProxy"));
    }
    for (member, variable, _) in PROXY {
        let Some(node) = value(node, member) else { continue };
        match text(node, &format!("proxy.{member}"), &format!("/proxy/{member}")) {
            Ok(text) => variables.push((variable, text.to_owned())),
            Err(wrong) => findings.push(*wrong),
        }
    }
}

fn text<'a>(node: &'a Node, field: &str, pointer: &str) -> Result<&'a str, Box<Diagnostic>> {
    match node.as_str() {
        Some("") => {
            let message = format!("field {field:?} must have minimum length of 1 (len=0)");
            Err(Box::new(finding("InvalidValue", message, pointer).help("omit the field to keep the variable")))
        }
        Some(text) => Ok(text),
        None => {
            let message = format!("invalid type for field {field:?}: got {}, want string", node.type_name());
            Err(Box::new(finding("InvalidType", message, pointer).help("put the value into quotes")))
        }
    }
}
