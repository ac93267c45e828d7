//! The component: the exports of the contract, implemented with the traits of this crate.

use std::{marker::PhantomData, sync::Once};

use crate::{
    Content, Description, Diagnostic, Entry, Failure, Location, ObjectId, Output, Position, Probe, Provisioner,
    ReadError, Refusal, Related, Request, Severity, diagnostic::bounded, log::Level,
};

#[expect(missing_docs, reason = "generated from the contract")]
#[expect(clippy::pedantic, reason = "generated from the contract")]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "plugin",
        generate_all,
        pub_export_macro: true,
    });
}

use bindings::{
    chandler::provisioner::{
        content as host_content, log as host_log, output as host_output, request as host_request, types as host_types,
    },
    exports::chandler::provisioner::provisioner as exports,
};

/// Exports a provisioner from the component.
pub struct Component<P>(PhantomData<P>);

impl<P: Provisioner> exports::Guest for Component<P> {
    fn detect() -> Option<String> {
        prepare();
        P::detect(&Bundle(host_content::open()))
    }

    fn config_schema() -> Result<Option<String>, host_types::Failure> {
        prepare();
        P::config_schema(&Bundle(host_content::open())).map_err(failure_into)
    }

    fn provision() -> Result<(), host_types::Failure> {
        prepare();
        P::provision(&Request::new(), &Bundle(host_content::open()), &mut Release).map_err(failure_into)
    }
}

/// The request of the call, from the host.
pub(crate) mod request {
    use serde_json::{Map, Value};

    use super::host_request;

    /// The host guarantees an object. Otherwise the call must fail.
    #[expect(clippy::panic, reason = "a trap is what a host without a configuration gets")]
    pub(crate) fn config() -> Map<String, Value> {
        let read = serde_json::from_str(&host_request::config());
        read.unwrap_or_else(|error| panic!("the host sent a configuration that is not an object: {error}"))
    }

    pub(crate) fn name() -> String {
        host_request::name()
    }

    pub(crate) fn namespace() -> String {
        host_request::namespace()
    }

    pub(crate) fn kubernetes_version() -> Option<String> {
        host_request::kubernetes_version()
    }

    pub(crate) fn serves(api_version: &str, kind: &str) -> Option<bool> {
        host_request::serves(api_version, kind)
    }

    pub(crate) fn api_kinds() -> Vec<String> {
        host_request::api_kinds()
    }

    pub(crate) fn supports(feature: &str) -> bool {
        host_request::supports(feature)
    }
}

/// Logs the message of a panic before the trap ends the instance.
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

struct Bundle(host_content::Bundle);

impl Content for Bundle {
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
            host_content::ReadError::Other(reason) => ReadError::Other(reason),
        })
    }
}

/// The release of the call.
struct Release;

impl Output for Release {
    fn emit(&mut self, object: &[u8], stage: Option<u32>, origin: Option<Location>) -> Result<ObjectId, Refusal> {
        let origin = origin.map(location_into);
        host_output::emit(object, stage, origin.as_ref()).map(ObjectId).map_err(refusal_from)
    }

    fn probe(&mut self, probe: &Probe) -> Result<(), Refusal> {
        let Probe { selector, rule, message, message_expression } = probe.clone();
        let selector = host_output::Selector {
            group: selector.group,
            kind: selector.kind,
            namespace: selector.namespace,
            name: selector.name,
            labels: selector.labels.into_iter().collect(),
        };
        host_output::add_probe(&host_output::Probe { selector, rule, message, message_expression })
            .map_err(refusal_from)
    }

    fn report(&mut self, finding: &Diagnostic) {
        host_output::report(&diagnostic_into(finding.clone()));
    }

    fn describe(&mut self, bundle: &Description) {
        let properties = bundle.properties.iter();
        let properties = properties
            .map(|property| host_output::Property { type_: property.kind.clone(), value: property.value.to_string() });
        host_output::describe(&host_output::Description {
            name: bundle.name.clone(),
            package_name: bundle.package.clone(),
            version: bundle.version.clone(),
            properties: properties.collect(),
        });
    }
}

fn refusal_from(refusal: host_output::Refusal) -> Refusal {
    match refusal {
        host_output::Refusal::TooLarge => Refusal::TooLarge,
        host_output::Refusal::TooMany => Refusal::TooMany,
        host_output::Refusal::Malformed => Refusal::Malformed,
        host_output::Refusal::Duplicate => Refusal::Duplicate,
        host_output::Refusal::Other(reason) => Refusal::Other(reason),
    }
}

fn failure_into(failure: Failure) -> host_types::Failure {
    let all = |findings: Vec<Diagnostic>| bounded(findings).into_iter().map(diagnostic_into).collect();
    match failure {
        Failure::InvalidContent(findings) => host_types::Failure::InvalidContent(all(findings)),
        Failure::InvalidConfig(findings) => host_types::Failure::InvalidConfig(all(findings)),
        Failure::Unsupported(findings) => host_types::Failure::Unsupported(all(findings)),
        Failure::Internal(findings) => host_types::Failure::Internal(all(findings)),
        Failure::Other { reason, findings } => {
            host_types::Failure::Other(host_types::OtherFailure { reason, findings: all(findings) })
        }
    }
}

fn diagnostic_into(finding: Diagnostic) -> host_types::Diagnostic {
    let severity = match finding.severity {
        Severity::Error => host_types::Severity::Error,
        Severity::Warning => host_types::Severity::Warning,
        Severity::Info => host_types::Severity::Info,
    };
    let related = |Related { location, message }| host_types::Related { location: location_into(location), message };
    host_types::Diagnostic {
        severity,
        code: finding.code,
        message: finding.message,
        location: finding.location.map(location_into),
        related: finding.related.into_iter().map(related).collect(),
        help: finding.help,
        url: finding.url,
    }
}

fn location_into(location: Location) -> host_types::Location {
    let Location { path, start, end, pointer } = location;
    let position = |Position { line, column }| host_types::Position { line, column };
    host_types::Location { path, start: start.map(position), end: end.map(position), pointer }
}
