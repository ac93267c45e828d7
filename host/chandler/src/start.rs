//! From the command line to the exit code.

use std::process::ExitCode;

use chandler_turns::yield_thread;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::{
    Arguments, CommandError,
    command::{
        Command, completion,
        line::{self, Line, Mistake},
    },
    logging::Logging,
    read::provisioner,
    view::{
        output,
        terminal::{self, Terminal},
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
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Command::Controller(controller) = &arguments.command {
        // Before the first connection, to a collector of traces or to the API server.
        controller.tls()?.install();
        // The thread that holds the Lease is not one of these. The main thread hardly works.
        runtime.on_thread_start(yield_thread);
    }
    let runtime = runtime
        .enable_all()
        .build()
        .map_err(|error| CommandError::failed("failed to start the runtime").because(&error))?;
    let logging = Logging::install(arguments, terminal, runtime.handle())?;
    let ended = runtime.block_on(arguments.command.run(terminal));
    logging.end();
    ended
}
