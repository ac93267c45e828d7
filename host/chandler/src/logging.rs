//! Log lines on standard error, whose level signals change, and the traces of a controller.

use std::time::Duration;

use chandler_traces::{ExportOptions, Exporter, TARGET, WithTraceId};
use tokio::runtime::Handle;
use tracing_subscriber::{
    EnvFilter, Layer as _, Registry, filter::ParseError, layer::SubscriberExt as _, reload,
    util::SubscriberInitExt as _,
};

use crate::{
    Arguments, CommandError,
    arguments::traces::TracesArguments,
    command::{Command, controller::LogFormat},
    signals::{LevelChange, LevelSignals},
    view::{
        log::{Lines, Printable},
        spinner::StandardError,
        terminal::{Look, Terminal},
    },
};

/// How long the last traces may take to export: with the grace period of reconciles less than the 30 s that a kubelet waits by default.
const FLUSH: Duration = Duration::from_secs(3);

/// What lines never show, even if the level is raised, unless the user names its target.
///
/// kube logs responses that it cannot parse, including Secrets, and reports as errors and warnings what is retried: the caller logs what the user
/// should know of it. The verifier of certificates logs what is also the cause of an error.
const SILENCED: &[&str] = &[
    "kube_client::client=error",
    "kube_client::client::builder=off",
    "kube_runtime::watcher=error",
    "rustls_platform_verifier=off",
];

/// The level that SIGUSR1 raises the log to. Other crates keep their level: lines of HTTP libraries are not about Chandler.
const RAISED: &str = "chandler=debug";

/// The log, and the export of traces.
pub(crate) struct Logging {
    exporter: Option<Exporter>,
}

impl Logging {
    /// Starts both. The signals for the level and the requests to the collector are handled on this runtime.
    pub(crate) fn install(arguments: &Arguments, terminal: &Terminal, runtime: &Handle) -> Result<Self, CommandError> {
        let (default, format, export) = match &arguments.command {
            Command::Controller(controller) => ("info", controller.log_format, Some(&controller.traces)),
            _ => ("error", LogFormat::Text, None),
        };
        let directives = arguments.log_level.as_deref().filter(|text| !text.is_empty()).unwrap_or(default).to_owned();
        let filter = filter(&directives).map_err(|error| {
            CommandError::usage(format!("{directives:?} is not a log level")).because(&error).hint(
                "write `error`, `warn`, `info`, `debug`, `trace`, or directives such as `warn,chandler_controller=debug`",
            )
        })?;
        let export = export.map(TracesArguments::options).transpose().map_err(|error| {
            CommandError::usage("--otlp-endpoint or OTEL_EXPORTER_OTLP_ENDPOINT is not valid").because(&error)
        })?;
        let exporter = export.flatten().map(|options| start(&options, runtime)).transpose()?;
        let (filter, level) = reload::Layer::new(filter);
        let lines = match format {
            LogFormat::Json => Lines::Json,
            LogFormat::Text if terminal.look() == Look::Colour => Lines::Coloured,
            LogFormat::Text => Lines::Text,
        };
        let coloured = lines == Lines::Coloured;
        let layer =
            tracing_subscriber::fmt::layer().with_writer(move || Printable(StandardError, lines)).with_ansi(coloured);
        let written = match format {
            LogFormat::Json => {
                layer.json().flatten_event(true).map_event_format(WithTraceId::json).with_filter(filter).boxed()
            }
            LogFormat::Text => {
                let format = |format: tracing_subscriber::fmt::format::Format| format.with_ansi(coloured);
                layer.map_event_format(|it| WithTraceId::text(format(it))).with_filter(filter).boxed()
            }
        };
        tracing_subscriber::registry().with(written).with(exporter.as_ref().map(Exporter::layer)).init();
        if matches!(arguments.command, Command::Controller(_)) {
            let signals = {
                let _runtime = runtime.enter();
                LevelSignals::listen()
            };
            let signals =
                signals.map_err(|error| CommandError::failed("failed to listen for signals").because(&error))?;
            runtime.spawn(follow(signals, level, directives));
        }
        Ok(Self { exporter })
    }

    /// Exports the last traces.
    pub(crate) fn end(self) {
        if let Some(exporter) = self.exporter {
            exporter.shut_down(FLUSH);
        }
    }
}

fn start(options: &ExportOptions, runtime: &Handle) -> Result<Exporter, CommandError> {
    Exporter::start(options, runtime.clone())
        .map_err(|error| CommandError::failed("failed to set up the export of traces").because(&error))
}

/// Changes the level whenever a signal asks for it. Never completes.
async fn follow(mut signals: LevelSignals, level: reload::Handle<EnvFilter, Registry>, start: String) {
    loop {
        let (directives, change) = match signals.received().await {
            LevelChange::Raise => (raised(&start), "raised by SIGUSR1; SIGUSR2 restores it"),
            LevelChange::Restore => (start.clone(), "restored by SIGUSR2"),
        };
        // Shown at the higher one of the two levels.
        let log = || tracing::info!(directives, "the log level is {change}");
        let restored = directives == start;
        if restored {
            log();
        }
        if let Ok(filter) = filter(&directives)
            && let Err(error) = level.reload(filter)
        {
            tracing::warn!(%error, "the log level cannot be changed");
        } else if !restored {
            log();
        }
    }
}

/// The directives with Chandler's own lines at the level debug, or unchanged if the level is not lower.
fn raised(directives: &str) -> String {
    let mut parts = directives.split(',').map(|part| part.trim().to_ascii_lowercase());
    let is_verbose = parts.any(|part| matches!(part.trim_start_matches("chandler="), "debug" | "trace"));
    if is_verbose { directives.to_owned() } else { format!("{directives},{RAISED}") }
}

fn filter(directives: &str) -> Result<EnvFilter, ParseError> {
    let filter = EnvFilter::try_new(directives)?;
    let named = |directive: &str| directives.contains(directive.split(':').next().unwrap_or_default());
    let silenced = SILENCED.iter().filter(|directive| !named(directive)).map(|directive| (*directive).to_owned());
    // Lines within the spans of traces are as they would be without traces.
    let spans = (!directives.contains(TARGET)).then(|| format!("{TARGET}=off"));
    Ok(silenced.chain(spans).filter_map(|directive| directive.parse().ok()).fold(filter, EnvFilter::add_directive))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_raised_for_chandler_only_and_never_lowered() {
        for (start, expected) in [
            ("info", "info,chandler=debug"),
            ("warn,chandler=info", "warn,chandler=info,chandler=debug"),
            ("debug", "debug"),
            ("Trace", "Trace"),
            ("info, chandler=trace", "info, chandler=trace"),
            ("info,chandler_engine=debug", "info,chandler_engine=debug,chandler=debug"),
        ] {
            assert_eq!(raised(start), expected);
        }
    }

    #[test]
    fn lines_that_may_have_secrets_stay_silenced_when_the_level_is_raised() {
        for start in ["info", "trace", "warn,chandler=info"] {
            let filter = filter(&raised(start)).unwrap().to_string();
            for directive in SILENCED.iter().copied().chain(["chandler::trace=off"]) {
                assert!(filter.contains(directive), "{filter}");
            }
        }
        let named = filter("info,kube_client=trace").unwrap().to_string();
        assert!(
            !named.contains("kube_client::client=error") && named.contains("kube_runtime::watcher=error"),
            "{named}"
        );
    }
}
