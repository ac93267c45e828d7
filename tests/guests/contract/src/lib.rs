//! A provisioner that calls every function of the contract, and returns every case of every variant that a provisioner can return.
//!
//! `cargo xtask contract` builds its component for the newest version of the contract into `tests/guests/components`. The component of a
//! published version is never built again: `host/engine/tests/contract.rs` runs it on the host as it is today.
//!
//! The format `contract+v0`: a bundle with a file `contract`. Its text, and the file `schema`, select what the calls return.

use chandler_sdk::{
    Content, Description, Diagnostic, Facts, Failure, Location, ObjectId, Output, Probe, Property, Provisioner,
    ReadError, Refusal, Request, Selector,
    log::{Level, log},
};
use serde_json::{Value, json};

/// The provisioner.
pub struct Contract;

impl Provisioner for Contract {
    const FACTS: Facts = Facts::new("contract", "1.0.0").formats(&["contract+v0"]);

    fn detect(content: &dyn Content) -> Option<String> {
        // The answer to `supports` is part of every call.
        let oxen = if Request::new().supports("oxen") { "+oxen" } else { "" };
        content.exists("contract").then(|| format!("contract+v0{oxen}"))
    }

    fn config_schema(content: &dyn Content) -> Result<Option<String>, Failure> {
        match content.read("schema") {
            Ok(text) => String::from_utf8(text).map(Some).map_err(|_| failure("invalid-content")),
            Err(ReadError::NotFound) => Ok(None),
            Err(error) => Err(Failure::internal(error.to_string())),
        }
    }

    #[expect(clippy::panic, reason = "a trap is part of the contract")]
    fn provision(request: &Request, content: &dyn Content, output: &mut dyn Output) -> Result<(), Failure> {
        let wanted = String::from_utf8(content.read("contract").unwrap_or_default()).unwrap_or_default();
        match wanted.trim() {
            "" => {}
            "panic" => panic!("as wanted"),
            "refusals" => return Err(refused(output)),
            reason => return Err(failure(reason)),
        }
        for (level, name) in
            [(Level::Debug, "debug"), (Level::Info, "info"), (Level::Warn, "warn"), (Level::Error, "error")]
        {
            log(level, "one of each level", &[("level", name)]);
        }
        let seen = json!({
            "config": request.config(),
            "name": request.name(),
            "namespace": request.namespace(),
            "kubernetesVersion": request.kubernetes_version(),
            "serves": request.serves("v1", "Pod"),
            "apiKinds": request.api_kinds(),
            "supports": request.supports("oxen"),
            "digest": content.digest(),
            "files": content.files("").iter().map(|entry| (entry.path.clone(), entry.size)).collect::<Vec<_>>(),
            "page": content.page("", Some("contract"), 1).len(),
            "part": content.read_at("directory/file", 2, 3).map(|bytes| bytes.len()).map_err(|error| error.to_string()),
            "missing": content.read("missing").map_err(|error| error.to_string()).err(),
            "directory": content.read("directory").map_err(|error| error.to_string()).err(),
        });
        let origin = Location { path: "contract".to_owned(), pointer: Some("/a".to_owned()), ..Location::default() };
        let ObjectId(first) = output.emit_value(
            &object("seen", &seen),
            None,
            Some(origin.clone().starting_at(1, 2).ending_before(3, 4)),
        )?;
        let ObjectId(second) = output.emit_value(&object("staged", &json!(first)), Some(2), None)?;
        let labels = [("app".to_owned(), "contract".to_owned())].into_iter().collect();
        let selector = Selector {
            group: String::new(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("space".to_owned()),
            name: Some("seen".to_owned()),
            labels,
        };
        output.probe(&Probe {
            selector,
            rule: "has(self.data)".to_owned(),
            message: Some(format!("object {second} came last")),
            message_expression: Some("self.metadata.name".to_owned()),
        })?;
        let related = origin.clone().starting_at(7, 0);
        for finding in [
            Diagnostic::error("AnError", "an error"),
            Diagnostic::warning("AWarning", "a warning"),
            Diagnostic::info("ANote", "a note"),
        ] {
            let finding = finding
                .at("contract")
                .position(1, 2)
                .until(3, 4)
                .pointer("/a")
                .related(related.clone(), "it is here, too");
            output.report(&finding.help("a help").url("https://example.com"));
        }
        output.describe(&Description {
            name: Some("contract.v1".to_owned()),
            package: Some("contract".to_owned()),
            version: Some("1.0.0".to_owned()),
            properties: vec![Property { kind: "example.contract".to_owned(), value: json!({"a": [1]}) }],
        });
        Ok(())
    }
}

chandler_sdk::export!(Contract);

fn object(name: &str, value: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"value": value.to_string()}})
}

/// The failure with this name.
fn failure(name: &str) -> Failure {
    let findings = vec![Diagnostic::error("AsWanted", format!("the bundle wants {name}"))];
    match name {
        "invalid-content" => Failure::InvalidContent(findings),
        "invalid-config" => Failure::InvalidConfig(findings),
        "unsupported" => Failure::Unsupported(findings),
        "internal" => Failure::Internal(findings),
        reason => Failure::Other { reason: reason.to_owned(), findings },
    }
}

/// What the host answers to the second of two equal objects, and to whatever follows.
fn refused(output: &mut dyn Output) -> Failure {
    let twin = object("twin", &json!(0));
    let answers: Vec<Option<Refusal>> = (0..3).map(|_| output.emit_value(&twin, None, None).err()).collect();
    Failure::internal(format!("{answers:?}"))
}
