//! The component: what the contract asks for, over the traits of this crate.

use std::{marker::PhantomData, sync::Once};

use crate::{
    Content, Description, Diagnostic, EmitError, Entry, Failure, Location, Output, Probe, Provisioner, ReadError,
    Request, Severity, Target, log::Level,
};

#[expect(missing_docs, reason = "generated from the contract")]
#[expect(clippy::pedantic, reason = "generated from the contract")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/0.1.0",
        world: "plugin",
        generate_all,
        pub_export_macro: true,
    });
}

use bindings::{
    chandler::provisioner::{content as host_content, log as host_log, output as host_output, types as host_types},
    exports::chandler::provisioner::provisioner as exports,
};

/// Makes a provisioner the export of the component.
pub struct Component<P>(PhantomData<P>);

impl<P: Provisioner> exports::Guest for Component<P> {
    fn detect(content: &exports::Bundle) -> Option<String> {
        prepare();
        P::detect(&Bundle(content))
    }

    fn config_schema(content: &exports::Bundle) -> Option<String> {
        prepare();
        P::config_schema(&Bundle(content))
    }

    fn provision(
        request: exports::Request,
        content: &exports::Bundle,
        out: &exports::Sink,
    ) -> Result<(), host_types::Failure> {
        prepare();
        let request = request_from(request).map_err(failure_into)?;
        P::provision(&request, &Bundle(content), &mut Sink(out)).map_err(failure_into)
    }
}

/// Says what a panic was about before the trap takes the instance down.
fn prepare() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| log(Level::Error, &panic.to_string(), &[])));
    });
}

/// Logs through the host.
pub fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    let level = match level {
        Level::Debug => host_log::Level::Debug,
        Level::Info => host_log::Level::Info,
        Level::Warn => host_log::Level::Warn,
        Level::Error => host_log::Level::Error,
    };
    let fields: Vec<(String, String)> =
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    host_log::log(level, message, &fields);
}

struct Bundle<'a>(&'a exports::Bundle);

impl Content for Bundle<'_> {
    fn digest(&self) -> String {
        self.0.digest()
    }

    fn page(&self, prefix: &str, after: Option<&str>, limit: u32) -> Vec<Entry> {
        let page = self.0.entries(prefix, after, limit);
        page.into_iter().map(|entry| Entry { path: entry.path, size: entry.size }).collect()
    }

    fn read_at(&self, path: &str, offset: u64, len: u32) -> Result<Vec<u8>, ReadError> {
        self.0.read(path, offset, len).map_err(|error| match error {
            host_content::ReadError::NotFound => ReadError::NotFound,
            host_content::ReadError::NotAFile => ReadError::NotAFile,
            host_content::ReadError::BudgetExhausted => ReadError::BudgetExhausted,
        })
    }
}

struct Sink<'a>(&'a exports::Sink);

impl Output for Sink<'_> {
    fn emit(&mut self, object: &[u8], stage: Option<u32>, origin: Option<Location>) -> Result<(), EmitError> {
        let origin = origin.map(location_into);
        self.0.emit(object, stage, origin.as_ref()).map_err(emit_error)
    }

    fn probe(&mut self, probe: &Probe) -> Result<(), EmitError> {
        let check = host_output::Probe {
            api_version: probe.api_version.clone(),
            kind: probe.kind.clone(),
            namespace: probe.namespace.clone(),
            name: probe.name.clone(),
            rule: probe.rule.clone(),
            message: probe.message.clone(),
        };
        self.0.probe(&check).map_err(emit_error)
    }

    fn report(&mut self, finding: &Diagnostic) {
        self.0.report(&diagnostic_into(finding.clone()));
    }

    fn describe(&mut self, bundle: &Description) {
        let properties = bundle.properties.iter();
        let properties = properties
            .map(|property| host_output::Property { type_: property.kind.clone(), value: property.value.to_string() });
        self.0.describe(&host_output::Description {
            name: bundle.name.clone(),
            package_name: bundle.package.clone(),
            version: bundle.version.clone(),
            properties: properties.collect(),
        });
    }
}

fn emit_error(error: host_output::EmitError) -> EmitError {
    match error {
        host_output::EmitError::TooLarge => EmitError::TooLarge,
        host_output::EmitError::TooMany => EmitError::TooMany,
        host_output::EmitError::Malformed => EmitError::Malformed,
        host_output::EmitError::Duplicate => EmitError::Duplicate,
    }
}

fn request_from(request: exports::Request) -> Result<Request, Failure> {
    let config = serde_json::from_str(&request.config)
        .map_err(|error| Failure::Internal(format!("the host sent a configuration that is not an object: {error}")))?;
    let exports::Target { name, namespace, kubernetes_version, api_kinds } = request.target;
    Ok(Request { config, target: Target { name, namespace, kubernetes_version, api_kinds } })
}

fn failure_into(failure: Failure) -> host_types::Failure {
    let all = |findings: Vec<Diagnostic>| findings.into_iter().map(diagnostic_into).collect();
    match failure {
        Failure::InvalidContent(findings) => host_types::Failure::InvalidContent(all(findings)),
        Failure::InvalidConfig(findings) => host_types::Failure::InvalidConfig(all(findings)),
        Failure::Unsupported(findings) => host_types::Failure::Unsupported(all(findings)),
        Failure::Internal(message) => host_types::Failure::Internal(message),
    }
}

fn diagnostic_into(finding: Diagnostic) -> host_types::Diagnostic {
    let severity = match finding.severity {
        Severity::Error => host_types::Severity::Error,
        Severity::Warning => host_types::Severity::Warning,
        Severity::Info => host_types::Severity::Info,
    };
    host_types::Diagnostic {
        severity,
        code: finding.code,
        message: finding.message,
        location: finding.location.map(location_into),
        help: finding.help,
    }
}

fn location_into(location: Location) -> host_types::Location {
    let Location { path, line, column, pointer } = location;
    host_types::Location { path, line, column, pointer }
}
