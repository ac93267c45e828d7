//! Compares the imports of a component with what this host provides.
//!
//! wasmtime reports only the first missing import, in terms of its linker. This module lists all of them, each with a
//! remedy.

use std::fmt;

use serde::Serialize;
use wasmtime::{
    Engine,
    component::{Component, Linker, ResourceType, types::ComponentItem},
};

use crate::{
    contract::{self, PACKAGE, VERSION},
    host::{Fault, State},
    text::sanitize,
};

/// An import that this host does not provide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingImport {
    /// The interface, such as `wasi:http/types@0.2.6`, followed by `#function` if only a function is missing.
    pub name: String,
    /// How to resolve it.
    pub remedy: &'static str,
}

/// The longest name in a message, in bytes: a component chooses its import names freely.
const NAME_BYTES: usize = 256;
/// The most imports that a message lists.
const LISTED: usize = 20;

impl MissingImport {
    fn new(name: String, remedy: &'static str) -> Self {
        Self { name: sanitize(name, NAME_BYTES), remedy }
    }

    pub(crate) fn list(imports: &[Self]) -> String {
        let mut listed: Vec<String> = imports.iter().take(LISTED).map(ToString::to_string).collect();
        if imports.len() > LISTED {
            listed.push(format!("and {} more", imports.len() - LISTED));
        }
        listed.join("; ")
    }
}

impl fmt::Display for MissingImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.remedy)
    }
}

/// The functions of the contract that the host provides, by interface.
const CONTRACT: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("content", &["[method]bundle.digest", "[method]bundle.entries", "[method]bundle.read", "open"]),
    ("request", &["config", "name", "namespace", "kubernetes-version", "serves", "api-kinds", "supports"]),
    ("output", &["emit", "add-probe", "report", "describe"]),
    ("log", &["log"]),
];

/// The interfaces of WASI 0.2 that the host provides.
const WASI: &[(&str, &[&str])] = &[
    (
        "wasi:cli",
        &[
            "environment",
            "exit",
            "stdin",
            "stdout",
            "stderr",
            "terminal-input",
            "terminal-output",
            "terminal-stdin",
            "terminal-stdout",
            "terminal-stderr",
        ],
    ),
    ("wasi:clocks", &["monotonic-clock", "wall-clock"]),
    ("wasi:filesystem", &["types", "preopens"]),
    ("wasi:io", &["error", "poll", "streams"]),
    ("wasi:random", &["random", "insecure", "insecure-seed"]),
    (
        "wasi:sockets",
        &["network", "instance-network", "ip-name-lookup", "tcp", "tcp-create-socket", "udp", "udp-create-socket"],
    ),
];

const REMEDY_NEWER_HOST: &str = "upgrade Chandler, or build the component against an older version of the contract";
const REMEDY_NETWORK: &str = "provisioners have no network; build the component without it";
const REMEDY_WASI: &str = "build the component for WASI 0.2";
const REMEDY_OTHER: &str = "not part of the contract; build the component without it";

/// The missing interfaces, judged by name only.
pub(crate) fn missing_interfaces(imports: &[String]) -> Vec<MissingImport> {
    let missing = imports.iter().filter_map(|name| Some(MissingImport::new(name.clone(), remedy(name)?)));
    missing.collect()
}

/// How to resolve a missing interface, or `None` if the host provides it.
fn remedy(name: &str) -> Option<&'static str> {
    let (path, version) = name.split_once('@').unwrap_or((name, ""));
    let (package, interface) = path.split_once('/').unwrap_or((path, ""));
    if package == PACKAGE {
        let known = CONTRACT.iter().any(|(known, _)| *known == interface) && contract::supports(version);
        return (!known).then_some(REMEDY_NEWER_HOST);
    }
    if matches!(package, "wasi:http" | "wasi:tls") {
        return Some(REMEDY_NETWORK);
    }
    let known = WASI.iter().any(|(known, interfaces)| *known == package && interfaces.contains(&interface));
    match known {
        true if version.starts_with("0.2.") => None,
        true => Some(REMEDY_WASI),
        false => Some(REMEDY_OTHER),
    }
}

/// The resources of the contract, as `interface#resource`.
const RESOURCES: &[&str] = &["content#bundle"];

/// A function or resource of the contract's interfaces that a component imports and this host lacks.
#[derive(Debug)]
pub(crate) struct Unknown {
    /// The full name of the interface, as the component imports it.
    import: String,
    interface: &'static str,
    name: String,
    is_resource: bool,
}

/// What a linker has in place of a resource that the host lacks. No guest ever gets one.
struct Absent;

impl Unknown {
    /// The name in declarations of optional functions.
    fn declared(&self) -> String {
        format!("{}#{}", self.interface, self.name)
    }

    /// Defines a function that traps.
    fn define(&self, linker: &mut Linker<State>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&format!("{PACKAGE}/{}@{VERSION}", self.interface))?;
        if self.is_resource {
            return instance.resource(&self.name, ResourceType::host::<Absent>(), |_, _| Ok(()));
        }
        let called = sanitize(self.declared(), NAME_BYTES);
        instance.func_new(&self.name, move |_, _, _, _| Err(Fault::NotProvided(called.clone()).into()))
    }
}

/// The functions and resources that are missing from the contract's interfaces.
pub(crate) fn unknown(engine: &Engine, component: &Component) -> Vec<Unknown> {
    let mut unknown = Vec::new();
    for (import, item) in component.component_type().imports(engine) {
        let interface = import.split('@').next().and_then(|path| path.strip_prefix(PACKAGE)?.strip_prefix('/'));
        let known = CONTRACT.iter().find(|(known, _)| Some(*known) == interface);
        let (Some((interface, functions)), ComponentItem::ComponentInstance(instance)) = (known, item.ty) else {
            continue;
        };
        for (name, item) in instance.exports(engine) {
            let is_resource = matches!(item.ty, ComponentItem::Resource(_));
            let is_known = match item.ty {
                ComponentItem::ComponentFunc(_) => functions.contains(&name),
                ComponentItem::Resource(_) => RESOURCES.contains(&format!("{interface}#{name}").as_str()),
                _ => true,
            };
            if !is_known {
                unknown.push(Unknown { import: import.to_owned(), interface, name: name.to_owned(), is_resource });
            }
        }
    }
    unknown
}

/// What is missing because the component does not declare it as optional.
pub(crate) fn required(unknown: &[Unknown], optional: &[String]) -> Vec<MissingImport> {
    let required = unknown.iter().filter(|unknown| !optional.contains(&unknown.declared()));
    required
        .map(|Unknown { import, name, .. }| MissingImport::new(format!("{import}#{name}"), REMEDY_NEWER_HOST))
        .collect()
}

/// The linker for a component that imports what this host lacks, all of it optional: functions that trap.
pub(crate) fn with_traps(linker: &Linker<State>, unknown: &[Unknown]) -> wasmtime::Result<Linker<State>> {
    let mut linker = linker.clone();
    unknown.iter().try_for_each(|unknown| unknown.define(&mut linker))?;
    Ok(linker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_missing_interface_is_named() {
        let imports = [
            "chandler:provisioner/log@0.1.3",
            "wasi:io/streams@0.2.6",
            "wasi:http/types@0.2.6",
            "wasi:cli/stdout@0.3.0",
            "chandler:provisioner/cluster@0.1.3",
            "chandler:provisioner/log@0.2.0",
            "acme:database/query@1.0.0",
            "loose-function",
        ];
        let missing = missing_interfaces(&imports.map(str::to_owned));
        let lines: Vec<String> = missing.iter().map(ToString::to_string).collect();
        insta::assert_snapshot!(lines.join("\n"), @r"
        wasi:http/types@0.2.6 (provisioners have no network; build the component without it)
        wasi:cli/stdout@0.3.0 (build the component for WASI 0.2)
        chandler:provisioner/cluster@0.1.3 (upgrade Chandler, or build the component against an older version of the contract)
        chandler:provisioner/log@0.2.0 (upgrade Chandler, or build the component against an older version of the contract)
        acme:database/query@1.0.0 (not part of the contract; build the component without it)
        loose-function (not part of the contract; build the component without it)
        ");
    }

    #[test]
    fn names_are_sanitized_and_long_lists_are_shortened() {
        let named = |name: &str| missing_interfaces(&[name.to_owned()]).remove(0).name;
        assert_eq!(named("c\0\u{1b}[31m"), "c\\u{0000}\\u{001B}[31m");
        assert_eq!(named(&"x".repeat(1000)).len(), NAME_BYTES);
        let many: Vec<String> = (0..1000).map(|number| format!("i{number}")).collect();
        let list = MissingImport::list(&missing_interfaces(&many));
        assert!(list.ends_with("; and 980 more"), "{list}");
    }

    #[test]
    fn the_table_matches_the_contract() {
        let mut resolve = wit_parser::Resolve::default();
        let text = include_str!("../../../wit/0.1.0/provisioner.wit");
        let package = resolve.push_str("provisioner.wit", text).unwrap();
        for (name, functions) in CONTRACT {
            let interface = &resolve.interfaces[resolve.packages[package].interfaces[*name]];
            let declared: Vec<&str> = interface.functions.keys().map(String::as_str).collect();
            assert_eq!(declared, *functions, "{name}");
        }
        // `provisioner` is the only exported interface.
        assert_eq!(resolve.packages[package].interfaces.len(), CONTRACT.len() + 1);
    }
}
