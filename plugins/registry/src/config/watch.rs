//! `watchNamespace` and `watchNamespaces`: the namespaces that the operator watches.

use chandler_sdk::Diagnostic;
use chandler_yaml::Node;

use super::{finding, unknown_field, value};
use crate::{modes::InstallModes, names::is_label};

/// The pattern of a namespace name.
pub(crate) const NAMESPACE_PATTERN: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

/// A description of that pattern.
const NAMESPACE_HELP: &str = "a namespace name has up to 63 lower-case letters, digits and dashes";

/// The maximum length of a namespace name.
pub(super) const LONGEST: usize = 63;

/// The namespaces to watch; none for the default. The messages come from OLM v1.
pub(super) fn targets(
    root: &Node,
    modes: &InstallModes,
    install_namespace: &str,
) -> Result<Option<Vec<String>>, Vec<Diagnostic>> {
    let several = several(root, modes)?;
    let configurable = modes.own() || modes.single();
    let Some(node) = root.get("watchNamespace") else {
        let missing = configurable && !modes.all() && several.is_none();
        return if missing { Err(vec![missing_field(modes)]) } else { Ok(several) };
    };
    if !configurable {
        let finding = unknown_field("watchNamespace", "/watchNamespace");
        return Err(vec![finding.help(format!("this operator supports the install modes {modes} only"))]);
    }
    if several.is_some() && !node.is_null() {
        let message = "fields \"watchNamespace\" and \"watchNamespaces\" exclude each other";
        return Err(vec![finding("ConflictingFields", message, "/watchNamespaces").help("set one of them")]);
    }
    if node.is_null() {
        // With a default, or with the other field, null means "not configured"; otherwise it counts as absent.
        return if modes.all() || several.is_some() { Ok(several) } else { Err(vec![missing_field(modes)]) };
    }
    let name = check_name(node, "watchNamespace", "/watchNamespace")?;
    check_mode(name, modes, install_namespace)?;
    Ok(Some(vec![name.to_owned()]))
}

fn missing_field(modes: &InstallModes) -> Diagnostic {
    // The words of the schema, so that the finding appears once.
    let fields = if modes.multi() { "\"watchNamespace\" or \"watchNamespaces\"" } else { "\"watchNamespace\"" };
    finding("RequiredFieldMissing", format!("required field {fields} is missing"), "/watchNamespace")
        .help(format!("this operator supports the install modes {modes}: name the namespace that it should watch"))
}

fn several(root: &Node, modes: &InstallModes) -> Result<Option<Vec<String>>, Vec<Diagnostic>> {
    let Some(node) = value(root, "watchNamespaces") else {
        return Ok(None);
    };
    if !modes.multi() {
        let finding = unknown_field("watchNamespaces", "/watchNamespaces");
        return Err(vec![finding.help(format!("this operator supports the install modes {modes} only"))]);
    }
    let Some(items) = node.as_sequence().filter(|items| !items.is_empty()) else {
        let message = "invalid type for field \"watchNamespaces\": want a list with at least one namespace";
        return Err(vec![finding("InvalidType", message, "/watchNamespaces").help("write it as [one, another]")]);
    };
    let mut names: Vec<String> = Vec::new();
    let mut findings = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let field = format!("watchNamespaces.{index}");
        match check_name(item, &field, &format!("/watchNamespaces/{index}")) {
            Ok(name) if names.iter().any(|other| other == name) => {}
            Ok(name) => names.push(name.to_owned()),
            Err(wrong) => findings.extend(wrong),
        }
    }
    // The order of the list has no meaning, so it must not change the objects.
    names.sort();
    if findings.is_empty() { Ok(Some(names)) } else { Err(findings) }
}

fn check_name<'a>(node: &'a Node, field: &str, pointer: &str) -> Result<&'a str, Vec<Diagnostic>> {
    let Some(name) = node.as_str() else {
        let message = format!("invalid type for field {field:?}: got {}, want string", node.type_name());
        return Err(vec![finding("InvalidType", message, pointer).help("put the name of a namespace into quotes")]);
    };
    let mut findings = Vec::new();
    let finding = |code: &str, message: String, pointer: &str| finding(code, message, pointer).help(NAMESPACE_HELP);
    let length = name.chars().count();
    if length == 0 {
        let message = format!("field {field:?} must have minimum length of 1 (len=0)");
        findings.push(finding("InvalidNamespace", message, pointer));
    }
    if length > LONGEST {
        let message = format!("field {field:?} must have maximum length of {LONGEST} (len={length})");
        findings.push(finding("InvalidNamespace", message, pointer));
    }
    if !is_label(name) {
        let message = format!("field {field:?} must match pattern {NAMESPACE_PATTERN:?}");
        findings.push(finding("InvalidNamespace", message, pointer));
    }
    if findings.is_empty() { Ok(name) } else { Err(findings) }
}

/// The formats of OLM v1's schema.
fn check_mode(name: &str, modes: &InstallModes, install_namespace: &str) -> Result<(), Vec<Diagnostic>> {
    let own = name == install_namespace;
    let (format, reason) = match (modes.own(), modes.single()) {
        (true, false) if !own => (
            "ownNamespaceInstallMode",
            format!(
                "must be {install_namespace:?} (the namespace where the operator is installed) because this operator \
                 only supports OwnNamespace install mode"
            ),
        ),
        (false, true) if own => (
            "singleNamespaceInstallMode",
            format!(
                "must be different from {install_namespace:?} (the install namespace) because this operator uses \
                 SingleNamespace install mode to watch a different namespace"
            ),
        ),
        _ => return Ok(()),
    };
    let message = format!(
        "invalid format for field \"watchNamespace\": '{name}' is not valid {format}: invalid value {name:?}: {reason}"
    );
    let finding = finding("InvalidNamespace", message, "/watchNamespace");
    Err(vec![finding.help(if own { "name another namespace" } else { "name the install namespace" })])
}
