//! How a run goes on: lines on standard error, and on a terminal one line that changes.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{terminal::Terminal, text::one_line};

/// The width of the column in which the words stand that tell what a line is about.
const LABEL: usize = 12;

/// Reports steps as they happen.
pub struct Progress {
    terminal: Terminal,
    started: Instant,
    spinner: Option<ProgressBar>,
    waiting: String,
}

impl Progress {
    /// Starts the clock.
    pub fn new(terminal: &Terminal) -> Self {
        let spinner = terminal.is_interactive().then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed:.dim}") {
                spinner.set_style(style);
            }
            spinner.enable_steady_tick(Duration::from_millis(100));
            spinner
        });
        Self { terminal: *terminal, started: Instant::now(), spinner, waiting: String::new() }
    }

    /// Something is done.
    pub fn step(&self, label: &str, text: &str) {
        self.line(&line(label, text));
    }

    /// Something is done that takes a moment: only worth a line that changes.
    pub fn busy(&self, text: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(one_line(text));
        }
    }

    /// Something is waited for. On a terminal it stands there until it changes; elsewhere it is a line, once.
    pub fn wait(&mut self, text: &str) {
        let text = one_line(text);
        if text == self.waiting {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner.set_message(text.clone()),
            None if text.is_empty() => {}
            None => self.line(&line("waiting", &text)),
        }
        self.waiting = text;
    }

    /// A line of its own.
    pub fn line(&self, text: &str) {
        match &self.spinner {
            Some(spinner) => spinner.suspend(|| self.terminal.line(text)),
            None => self.terminal.line(text),
        }
    }

    /// Where the lines go.
    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Takes away what changes.
    pub fn finish(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}

fn line(label: &str, text: &str) -> String {
    format!("{label:<LABEL$}  {}", one_line(text))
}

/// A duration for people: `3.4 s`, `2 min 5 s`.
pub fn seconds(duration: Duration) -> String {
    match duration.as_secs() {
        whole @ 0..60 => format!("{whole}.{} s", duration.subsec_millis() / 100),
        whole => format!("{} min {} s", whole / 60, whole % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_column_of_words() {
        assert_eq!(line("source", "an image\n  by digest"), "source        an image by digest");
    }

    #[test]
    fn durations_are_short() {
        for (millis, text) in [(0, "0.0 s"), (3_449, "3.4 s"), (59_999, "59.9 s"), (125_000, "2 min 5 s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
    }
}
