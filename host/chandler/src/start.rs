//! From the command line to the exit code.

use std::process::ExitCode;

use chandler_turns::yield_thread;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing_subscriber::EnvFilter;

use crate::{
    Arguments, CommandError,
    command::{
        Command, completion,
        controller::LogFormat,
        line::{self, Line, Mistake},
    },
    read::provisioner,
    view::{
        log::{Lines, Printable},
        output,
        spinner::StandardError,
        terminal::{self, Look, Terminal},
    },
};

/// Parses the command line, runs the command and reports its error.
pub fn main() -> ExitCode {
    // First, because the child process limits its own resources before it reads anything.
    if std::env::args_os().nth(1).is_some_and(|argument| argument == provisioner::COMPILE) {
        return chandler_engine::compile_child_main();
    }
    raise_file_limit();
    completion::answer();
    let Line { arguments, note } = match line::parse(std::env::args_os().collect()) {
        Ok(line) => line,
        Err(Mistake::Clap(error)) => exit(&error),
        Err(Mistake::Usage(error)) => return error.report(&Terminal::detect()),
    };
    if arguments.no_color {
        terminal::disable_colours();
    }
    let terminal = Terminal::detect();
    if let Some(note) = note {
        terminal.line(format!("note: {note}"));
    }
    match run(&arguments, &terminal) {
        Ok(code) => code,
        Err(error) => error.report(&terminal),
    }
}

/// Prints help, or what is wrong with the command line.
fn exit(error: &clap::Error) -> ! {
    if terminal::is_ascii() {
        let text = error.render().to_string();
        let text = terminal::drawn(&text);
        if error.use_stderr() {
            Terminal::detect().write(text);
        } else {
            let _ = output::print(&text);
        }
        std::process::exit(error.exit_code())
    }
    error.exit()
}

/// Lets this process open as many files as it may. Shells and container runtimes set a low limit for programs that use `select`, which this one
/// does not; with it, some hundred slow servers would leave no connection for the API server.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Limits that cannot be raised stay as they are.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn run(arguments: &Arguments, terminal: &Terminal) -> Result<ExitCode, CommandError> {
    log_to_standard_error(arguments, terminal)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if matches!(arguments.command, Command::Controller(_)) {
        // The thread that holds the Lease is not one of these. The main thread hardly works.
        runtime.on_thread_start(yield_thread);
    }
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| CommandError::failed("failed to start the runtime").because(&error))?;
    runtime.block_on(arguments.command.run(terminal))
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
    // kube logs responses that it cannot parse, including Secrets, and reports as errors and warnings what is retried: the caller logs
    // what the user should know of it. The verifier of certificates logs what is also the cause of an error.
    let silenced = [
        "kube_client::client=error",
        "kube_client::client::builder=off",
        "kube_runtime::watcher=error",
        "rustls_platform_verifier=off",
    ];
    let named = |directive: &str| directives.contains(directive.split(':').next().unwrap_or_default());
    let silenced = silenced.into_iter().filter(|directive| !named(directive));
    let filter = silenced.filter_map(|directive| directive.parse().ok()).fold(filter, EnvFilter::add_directive);
    let lines = match format {
        LogFormat::Json => Lines::Json,
        LogFormat::Text if terminal.look() == Look::Colour => Lines::Coloured,
        LogFormat::Text => Lines::Text,
    };
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(move || Printable(StandardError, lines))
        .with_ansi(lines == Lines::Coloured);
    match format {
        LogFormat::Json => builder.json().flatten_event(true).init(),
        LogFormat::Text => builder.init(),
    }
    Ok(())
}
