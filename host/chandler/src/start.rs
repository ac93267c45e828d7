//! From the command line to the exit code.

use std::process::ExitCode;

use clap::Parser as _;
use tracing_subscriber::EnvFilter;

use crate::{
    Arguments, CommandError,
    arguments::Command,
    command::controller::LogFormat,
    log::{Lines, Printable},
    output, provision, reference,
    terminal::{Look, Terminal},
};

/// Reads the command line, runs the command, reports how it ended.
pub fn main() -> ExitCode {
    // Before anything else, since that process limits itself before it reads anything.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == provision::COMPILE) {
        return chandler_engine::compile_child_main();
    }
    let arguments = Arguments::parse();
    let terminal = Terminal::detect();
    match run(&arguments, &terminal) {
        Ok(code) => code,
        Err(error) => error.report(&terminal),
    }
}

fn run(arguments: &Arguments, terminal: &Terminal) -> Result<ExitCode, CommandError> {
    log_to_standard_error(arguments, terminal)?;
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|error| CommandError::failed("failed to start the runtime").because(&error))?;
    runtime.block_on(async {
        match &arguments.command {
            Command::Dev(dev) => return dev.run(terminal).await,
            Command::Render(render) => render.run(terminal).await?,
            Command::Lint(lint) => lint.run(terminal).await?,
            Command::Rbac(rbac) => Box::pin(rbac.run(terminal)).await?,
            Command::Status(status) => return status.run(terminal).await,
            Command::Tree(tree) => tree.run(terminal).await?,
            Command::Diff(diff) => {
                return Ok(ExitCode::from(Box::pin(diff.run(terminal)).await?));
            }
            Command::Approve(approve) => approve.run(terminal).await?,
            Command::Adopt(adopt) => Box::pin(adopt.run(terminal)).await?,
            Command::Delete(delete) => Box::pin(delete.run(terminal)).await?,
            Command::History(history) => history.run().await?,
            Command::Rollback(rollback) => rollback.run(terminal).await?,
            Command::Controller(controller) => Box::pin(controller.run()).await?,
            Command::Crds(crds) => crds.run()?,
            Command::Reference => output::print(&reference::markdown())?,
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn log_to_standard_error(arguments: &Arguments, terminal: &Terminal) -> Result<(), CommandError> {
    let (default, format) = match &arguments.command {
        Command::Controller(controller) => ("info", controller.log_format),
        _ => ("error", LogFormat::Text),
    };
    let directives = arguments.log_level.as_deref().filter(|text| !text.is_empty()).unwrap_or(default);
    let filter = EnvFilter::try_new(directives).map_err(|error| {
        CommandError::usage(format!("{directives:?} is not a log level")).because(&error).hint(
            "write `error`, `warn`, `info`, `debug`, `trace`, or directives such as `warn,chandler_controller=debug`",
        )
    })?;
    // What it cannot parse, kube logs as a whole, Secrets included.
    let silenced = "kube_client::client=error".parse().ok().filter(|_| !directives.contains("kube_client"));
    let filter = silenced.into_iter().fold(filter, EnvFilter::add_directive);
    let lines = match format {
        LogFormat::Json => Lines::Json,
        LogFormat::Text if terminal.look() == Look::Colour => Lines::Coloured,
        LogFormat::Text => Lines::Text,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Printable(std::io::stderr(), lines))
        .with_ansi(lines == Lines::Coloured);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).init(),
        LogFormat::Text => builder.init(),
    }
    Ok(())
}
