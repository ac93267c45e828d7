//! Progress on standard error: lines, and on a terminal a status line that changes.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{spinner, terminal::Terminal, text::one_line};

/// The width of the label column.
const LABEL_WIDTH: usize = 12;

/// Prints progress as it happens.
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
        spinner::show(spinner.as_ref());
        Self { terminal: *terminal, started: Instant::now(), spinner, waiting: String::new() }
    }

    /// Prints a line with a label.
    pub fn report(&self, label: &str, text: &str) {
        self.line(&line(label, text));
    }

    /// Shows a short activity in the status line; prints nothing without a terminal.
    pub fn busy(&self, text: &str) {
        if let Some(spinner) = &self.spinner {
            spinner.set_message(one_line(text));
        }
    }

    /// Shows what the command waits for: in the status line, or without a terminal as a line each time it changes.
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

    /// Prints a line.
    pub fn line(&self, text: &str) {
        self.terminal.line(text);
    }

    /// The terminal.
    pub fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    /// The time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Removes the status line.
    pub fn finish(&self) {
        if let Some(spinner) = &self.spinner {
            spinner::show(None);
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
    format!("{label:<LABEL_WIDTH$}  {}", one_line(text))
}

/// A duration as text: `3.4 s`, `2 min 5 s`.
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
    fn lines_have_a_label_column() {
        assert_eq!(line("source", "an image\n  by digest"), "source        an image by digest");
    }

    #[test]
    fn durations_are_formatted_as_seconds_or_minutes() {
        for (millis, text) in [(0, "0.0 s"), (3_449, "3.4 s"), (59_999, "59.9 s"), (125_000, "2 min 5 s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
    }
}
