//! The provisioner of sets: a bundle of BundleDeployments, which are installed in the order of their dependencies.
//!
//! Seed 003 of platform operators describes such sets (`ResolveSet`); no earlier project had them. The content is manifests of
//! `core.rukpak.io/v1alpha2 BundleDeployment` in YAML or JSON: any number of files, documents and `List`s. A member names the members
//! that must be healthy before it is created in the annotation `resolveset.chandler.dev/depends-on`, with commas between the names.
//!
//! | module | holds |
//! |---|---|
//! | `detect` | format detection |
//! | `load` | parsing files into values |
//! | `member` | validation of one member |
//! | [`order`] | stages, by dependencies |

mod detect;
mod load;
mod member;
pub mod order;

use std::collections::BTreeMap;

use chandler_sdk::{Content, Description, Diagnostic, Facts, Failure, Output, Property, Provisioner, Request};
use serde_json::json;

use self::member::Member;

/// The name of the format.
pub const FORMAT: &str = "resolveset+v0";

/// The annotation with the names of the members that a member depends on.
pub const DEPENDS_ON: &str = "resolveset.chandler.dev/depends-on";

/// The most members of a set.
pub const MEMBERS: usize = 1_000;

/// The provisioner.
#[derive(Debug)]
pub struct ResolveSet;

impl Provisioner for ResolveSet {
    const FACTS: Facts = Facts::new("resolveset", env!("CARGO_PKG_VERSION")).formats(&[FORMAT]);

    fn detect(content: &dyn Content) -> Option<String> {
        detect::is_set(content).then(|| FORMAT.to_owned())
    }

    fn config_schema(_: &dyn Content) -> Result<Option<String>, Failure> {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Configuration of a set: there is none",
            "type": "object",
            "additionalProperties": false,
        });
        Ok(Some(schema.to_string()))
    }

    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        if let Some(key) = request.config().keys().next() {
            let finding = Diagnostic::error("UnknownField", format!("a set has no configuration {key:?}"));
            let help = "configure a member in spec.config of its manifest";
            return Err(Failure::InvalidConfig(vec![finding.pointer(format!("/{key}")).help(help)]));
        }
        let load::Loaded { nodes, mut errors, warnings } = load::load(content);
        let members = member::members(nodes, request.name(), &mut errors);
        if errors.is_empty() && members.is_empty() {
            let message = "the set has no member: there is no file with a BundleDeployment";
            let first = content.files("").into_iter().map(|file| file.path).find(|path| load::is_manifest(path));
            let finding = Diagnostic::error("NoMembers", message).at(first.as_deref().unwrap_or("."));
            errors.push(finding.help(
                "put at least one manifest of a BundleDeployment into a file that ends with .yaml, .yml or .json",
            ));
        }
        if let Some(first) = members.get(MEMBERS) {
            let message = format!("the set has {} members, and {MEMBERS} at most are allowed", members.len());
            let finding = Diagnostic::error("TooManyMembers", message).at(&first.path).within(&first.node, "");
            errors.push(finding.help("divide it into several sets"));
        }
        let graph: BTreeMap<&str, &[String]> =
            members.iter().map(|member| (member.name.as_str(), member.depends_on.as_slice())).collect();
        let stages = match order::stages(&graph) {
            Ok(stages) => stages,
            Err(error) => {
                errors.push(disordered(&error, &members));
                BTreeMap::new()
            }
        };
        if !errors.is_empty() {
            return Err(Failure::InvalidContent(errors));
        }
        for warning in &warnings {
            output.report(warning);
        }
        output.describe(&describe(&members));
        for member in &members {
            let stage = stages.get(member.name.as_str()).copied();
            output.emit_node(&member.node, stage, &member.path)?;
        }
        Ok(())
    }
}

/// The finding about an order, at the member that it is about.
fn disordered(error: &order::OrderError, members: &[Member]) -> Diagnostic {
    let (code, name) = match error {
        order::OrderError::Unknown { member, .. } => ("UnknownMember", member.as_str()),
        order::OrderError::Cycle(cycle) => ("CyclicDependency", cycle.first().map_or("", String::as_str)),
    };
    let finding = Diagnostic::error(code, error.to_string());
    let finding = match members.iter().find(|member| member.name == name) {
        Some(member) => {
            finding.at(&member.path).within(&member.node, "/metadata/annotations/resolveset.chandler.dev~1depends-on")
        }
        None => finding,
    };
    finding.help(format!("the annotation {DEPENDS_ON} has names of members of the set, with commas between them"))
}

/// What the set installs: its members and their images.
fn describe(members: &[Member]) -> Description {
    let property = |member: &Member| {
        let image = member.node.at("/spec/source/image/ref").and_then(chandler_sdk::yaml::Node::as_str);
        Property { kind: "chandler.dev/member".to_owned(), value: json!({"name": member.name, "image": image}) }
    };
    Description { properties: members.iter().map(property).collect(), ..Description::default() }
}

chandler_sdk::export!(ResolveSet);
