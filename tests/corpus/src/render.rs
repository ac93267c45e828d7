//! Renders a bundle, in the sandbox or natively.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use chandler_core::{Content, MemoryContent, Object, Release, Request, Severity, Target};
use chandler_engine::{CallError, Engine, EngineOptions, Limits, Provisioner};
use chandler_expected::{Finding, Outcome, Refusal};
use chandler_registry::Registry;
use chandler_sdk::{
    Content as _, Diagnostic, Failure, Location, ObjectId, Output, Probe, Provisioner as _, Refusal as Refused, testing,
};
use serde_json::{Map, Value};

/// A way to render bundles.
pub enum Renderer {
    /// The component in its sandbox, as the controller runs it.
    Sandboxed(Box<Provisioner>, Limits),
    /// The native code, without Wasm.
    Native,
}

impl Renderer {
    /// A renderer that runs a component.
    ///
    /// # Errors
    /// If the component cannot be loaded.
    pub async fn sandboxed(component: &[u8]) -> anyhow::Result<Self> {
        let engine = Engine::new(EngineOptions::default())?;
        let provisioner = engine.load(component).await.context("failed to load the component")?;
        Ok(Self::Sandboxed(Box::new(provisioner), Limits::default()))
    }

    /// Renders a bundle. Also returns the time from the files in memory to the finished release.
    pub async fn render(
        &self,
        bundle: &testing::Bundle,
        namespace: &str,
        config: Map<String, Value>,
    ) -> (Outcome, Duration) {
        match self {
            Self::Sandboxed(provisioner, limits) => {
                let content = match content(bundle) {
                    Ok(content) => content,
                    Err(problem) => {
                        return (Outcome::Refused(Refusal::Content, vec![Finding::text(problem)]), Duration::ZERO);
                    }
                };
                let target = Target { name: "corpus".into(), namespace: namespace.into(), ..Target::default() };
                let started = Instant::now();
                let result = provisioner.provision(&Request { config, target }, content, limits).await;
                let elapsed = started.elapsed();
                (result.map_or_else(|error| refused(&error), |release| objects(&release)), elapsed)
            }
            Self::Native => {
                let started = Instant::now();
                let result = natively(bundle, namespace, config);
                let elapsed = started.elapsed();
                (result.map_or_else(|failure| Outcome::from(&failure), |release| objects(&release)), elapsed)
            }
        }
    }
}

fn content(bundle: &testing::Bundle) -> Result<Arc<dyn Content>, String> {
    let mut files = Vec::new();
    for entry in bundle.files("") {
        let bytes = bundle.read(&entry.path).map_err(|error| format!("{}: {error}", entry.path))?;
        files.push((entry.path, bytes));
    }
    Ok(Arc::new(MemoryContent::new(files)))
}

fn objects(release: &Release) -> Outcome {
    Outcome::Objects(release.objects().iter().map(|object| Value::Object(object.value.clone())).collect())
}

fn refused(error: &CallError) -> Outcome {
    let (refusal, findings) = match error {
        CallError::InvalidContent(findings) => (Refusal::Content, findings),
        CallError::InvalidConfiguration(findings) => (Refusal::Configuration, findings),
        CallError::UnsupportedContent(findings) => (Refusal::Unsupported, findings),
        other => {
            return Outcome::Refused(Refusal::Other(other.reason().as_str()), vec![Finding::text(other.to_string())]);
        }
    };
    // Findings before the error belong to the result.
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    Outcome::Refused(refusal, errors.map(finding).collect())
}

fn finding(finding: &chandler_core::Diagnostic) -> Finding {
    Finding {
        code: finding.code.clone(),
        message: finding.message.clone(),
        explained: finding.location.is_some() && finding.help.is_some(),
    }
}

/// The objects of a call, parsed as the host parses them.
#[derive(Default)]
struct Objects(Vec<Object>);

impl Output for Objects {
    fn emit(&mut self, object: &[u8], stage: Option<u32>, _origin: Option<Location>) -> Result<ObjectId, Refused> {
        let id = u32::try_from(self.0.len()).map_err(|_| Refused::TooMany)?;
        self.0.push(Object::parse(object, stage.unwrap_or(0), None).map_err(|_| Refused::Malformed)?);
        Ok(ObjectId(id))
    }

    fn probe(&mut self, _probe: &Probe) -> Result<(), Refused> {
        Ok(())
    }

    fn report(&mut self, _finding: &Diagnostic) {}
}

fn natively(bundle: &testing::Bundle, namespace: &str, config: Map<String, Value>) -> Result<Release, Failure> {
    let request = chandler_sdk::Request::new().with_config(config).with_name("corpus").with_namespace(namespace);
    let mut output = Objects::default();
    Registry::provision(&request, bundle, &mut output)?;
    Ok(Release::new(output.0, vec![], vec![]))
}
