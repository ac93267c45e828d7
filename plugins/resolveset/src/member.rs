//! Validates the members of a set.

use std::collections::BTreeMap;

use chandler_sdk::{Diagnostic, Location, yaml::Node};

use crate::{DEPENDS_ON, load::Value};

/// The version of the API.
const API_VERSION: &str = "core.rukpak.io/v1alpha2";
/// The kind.
const KIND: &str = "BundleDeployment";
/// The longest name of a BundleDeployment.
const NAME: usize = 52;

/// What the API server or the host sets, with the JSON pointer.
const SET_BY_OTHERS: [(&str, &str); 8] = [
    ("/status", "the controller writes the status"),
    (
        "/metadata/namespace",
        "a BundleDeployment is in no namespace; spec.installNamespace names the one to install into",
    ),
    ("/metadata/generateName", "it creates another object each time; set metadata.name"),
    ("/metadata/ownerReferences", "the set is the owner of its members"),
    ("/metadata/finalizers", "the controller adds its own"),
    ("/metadata/uid", "the API server sets it"),
    ("/metadata/resourceVersion", "the API server sets it"),
    ("/metadata/managedFields", "the API server sets it"),
];

/// A member.
#[derive(Debug)]
pub(crate) struct Member {
    /// The name.
    pub(crate) name: String,
    /// The names of the members that must be healthy before.
    pub(crate) depends_on: Vec<String>,
    /// The manifest.
    pub(crate) node: Node,
    /// The file that it is in.
    pub(crate) path: String,
}

/// The members among the values. `own` is the name of the BundleDeployment of the set.
pub(crate) fn members(values: Vec<Value>, own: &str, errors: &mut Vec<Diagnostic>) -> Vec<Member> {
    let mut members: Vec<Member> = Vec::with_capacity(values.len());
    let mut places: BTreeMap<String, Location> = BTreeMap::new();
    for (node, path) in values {
        let before = errors.len();
        check(&node, &path, own, errors);
        let Some(name) = node.at("/metadata/name").and_then(Node::as_str).filter(|_| errors.len() == before) else {
            continue;
        };
        if let Some(first) = places.get(name) {
            let message = format!("two members have the name {name}; the other one is at {first}");
            let finding = Diagnostic::error("DuplicateMember", message).at(&path).within(&node, "/metadata/name");
            errors.push(finding.help("rename or remove one of them"));
            continue;
        }
        let name = name.to_owned();
        places.insert(name.clone(), Location::of(&path, &node));
        members.push(Member { depends_on: depends_on(&node), name, node, path });
    }
    members
}

fn check(node: &Node, path: &str, own: &str, errors: &mut Vec<Diagnostic>) {
    let mut add = |code: &str, pointer: &str, message: String, help: &str| {
        errors.push(Diagnostic::error(code, message).at(path).within(node, pointer).help(help));
    };
    if node.as_mapping().is_none() {
        return add(
            "NotAnObject",
            "",
            format!("got {}, want a BundleDeployment", node.type_name()),
            "remove the document",
        );
    }
    let text = |pointer: &str| node.at(pointer).and_then(Node::as_str).unwrap_or_default();
    let (api_version, kind, name) = (text("/apiVersion"), text("/kind"), text("/metadata/name"));
    if kind != KIND {
        let help =
            "a set holds BundleDeployments only; install other objects with a plain bundle, which can be a member";
        return add("NotABundleDeployment", "/kind", format!("got an object of kind {kind:?}, want {KIND}"), help);
    }
    if api_version != API_VERSION {
        let help = "write the version that this provisioner supports";
        add("UnsupportedVersion", "/apiVersion", format!("got apiVersion {api_version:?}, want {API_VERSION}"), help);
    }
    let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    if name.is_empty()
        || name.len() > NAME
        || !name.chars().all(legal)
        || !edge(name.chars().next())
        || !edge(name.chars().next_back())
    {
        let help = "lower-case letters, digits, - and ., at most 52 of them, in quotes if it could be a number";
        add("InvalidName", "/metadata/name", format!("the name {name:?} is not the name of a BundleDeployment"), help);
    } else if name == own {
        let help = "rename the member: the set would delete itself";
        add("SetInItself", "/metadata/name", format!("the member {name} has the name of the set"), help);
    }
    for (pointer, help) in SET_BY_OTHERS {
        if node.at(pointer).is_some_and(|value| !value.is_null()) {
            let field = pointer.trim_start_matches('/').replace('/', ".");
            add("ForbiddenField", pointer, format!("a member must not have {field}"), help);
        }
    }
    let annotation = node.at("/metadata/annotations").and_then(|all| all.get(DEPENDS_ON));
    if annotation.is_some_and(|value| value.as_str().is_none()) {
        let pointer = "/metadata/annotations";
        add("InvalidAnnotation", pointer, format!("the annotation {DEPENDS_ON} is not a text"), "put it into quotes");
    }
    if node.get("spec").and_then(Node::as_mapping).is_none() {
        let help = "a BundleDeployment needs spec.installNamespace and spec.source";
        add("SpecMissing", "/spec", "the member has no spec".to_owned(), help);
    }
}

/// The names in the annotation, each once.
fn depends_on(node: &Node) -> Vec<String> {
    let text = node.at("/metadata/annotations").and_then(|all| all.get(DEPENDS_ON)).and_then(Node::as_str);
    let names = text.unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let mut names: Vec<String> = names.map(str::to_owned).collect();
    names.sort_unstable();
    names.dedup();
    names
}
