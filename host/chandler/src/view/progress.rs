//! Progress on standard error: lines, and on a terminal a status line that changes.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{
    spinner,
    table::cut_end,
    terminal::{self, Terminal},
    text::{one_line, wrapped},
};

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
            // The time comes first, since a long cause continues on the next lines.
            if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed:.dim} {msg}") {
                spinner.set_style(if terminal::is_ascii() { style.tick_chars("|/-\\ ") } else { style });
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
            spinner.set_message(status_lines(&one_line(text), self.terminal.width()));
        }
    }

    /// Shows what the command waits for, whole: in the status line and lines below it, or without a terminal as a line each time it changes.
    pub fn wait(&mut self, text: &str) {
        let text = one_line(text);
        if text == self.waiting {
            return;
        }
        match &self.spinner {
            Some(spinner) => spinner.set_message(status_lines(&text, self.terminal.width())),
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

/// The columns before the message: the spinner and a time such as `12m`.
const BEFORE: usize = 8;
/// The fewest columns of a line.
const FEWEST: usize = 20;
/// The most lines.
const LINES: usize = 6;

/// A message on as many lines as it needs; an excessive one is cut.
fn status_lines(text: &str, width: usize) -> String {
    let keep = width.saturating_sub(BEFORE).max(FEWEST);
    let text = cut_end(text, keep * LINES);
    let lines: Vec<String> = wrapped(&text, keep).into_iter().take(LINES).collect();
    terminal::drawn(&lines.join("\n  ")).into_owned()
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
    fn a_long_cause_is_shown_whole_at_80_columns() {
        let cause = "Deployment.apps harbour-system/pilot: 0 of 1 is available: ImagePullBackOff: registry.example.com/harbour/pilot:v1: not \
                     found in the registry, and no other node has it";
        let shown = status_lines(cause, 80);
        assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), cause.split_whitespace().collect::<Vec<_>>());
        assert!(
            shown.lines().count() > 1 && shown.lines().all(|line| line.chars().count() <= 80 - BEFORE + 2),
            "{shown}"
        );
        let endless = status_lines(&"word ".repeat(1000), 40);
        assert!(endless.lines().count() <= LINES, "{endless}");
        assert_eq!(status_lines("the controller", 80), "the controller");
    }

    #[test]
    fn durations_are_formatted_as_seconds_or_minutes() {
        for (millis, text) in [(0, "0.0 s"), (3_449, "3.4 s"), (59_999, "59.9 s"), (125_000, "2 min 5 s")] {
            assert_eq!(seconds(Duration::from_millis(millis)), text);
        }
    }
}
