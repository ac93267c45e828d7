//! The path as text.

use std::fmt::Write as _;

use super::{
    super::{
        invocation::quoted,
        table::{self, cut_end},
        text::{one_line, wrapped},
    },
    LeftOutPackage, Package, Path, Step, StepState,
};

/// The width of the names of steps.
const STEP: usize = 8;
/// The width of the labels of a package.
const LABEL: usize = 10;
/// The fewest columns for a message.
const FEWEST: usize = 40;

impl Path {
    /// The path as text. In `width` columns, a step that is done is cut at the end, and another one continues on the next lines.
    pub fn text(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{} {}\n", self.kind, one_line(&self.name));
        let keep = width.map_or(usize::MAX, |width| width.saturating_sub(STEP + 4).max(FEWEST));
        for Step { step, state, message } in &self.steps {
            let message = one_line(message);
            // The message of a step that is done may be cut; a cause is shown in full.
            let lines = if *state == StepState::Done { vec![cut_end(&message, keep)] } else { wrapped(&message, keep) };
            for (number, line) in lines.iter().enumerate() {
                let (sign, step) = if number == 0 { (state.sign(), *step) } else { ("", "") };
                let _ = writeln!(text, "{}", format!("{sign:<1} {step:<STEP$}  {line}").trim_end());
            }
        }
        if !self.packages.is_empty() {
            text.push_str("\npackages\n");
        }
        for package in &self.packages {
            write_package(&mut text, package);
        }
        self.write_lists(&mut text);
        self.write_olm(&mut text);
        text
    }

    /// The states that the kinds of OLM would have.
    fn write_olm(&self, text: &mut String) {
        let row = |kind: &str, name: &str, state: String| vec![kind.to_owned(), one_line(name), state];
        let subscriptions = self.packages.iter().filter_map(|package| {
            package.subscription.map(|state| row("Subscription", &package.package, state.to_string()))
        });
        let plan = self.install_plan.map(|phase| row("InstallPlan", &self.name, phase.to_string()));
        let csvs = self.packages.iter().flat_map(|package| &package.cluster_service_versions);
        let csvs = csvs.map(|csv| row("ClusterServiceVersion", &csv.name, csv.phase.to_string()));
        let rows: Vec<Vec<String>> = subscriptions.chain(plan).chain(csvs).collect();
        if rows.is_empty() {
            return;
        }
        text.push_str("\nin terms of OLM\n");
        for line in table::aligned(&rows) {
            let _ = writeln!(text, "  {line}");
        }
    }

    fn write_lists(&self, text: &mut String) {
        let left_out: Vec<String> = self.left_out.iter().map(LeftOutPackage::line).collect();
        for (title, lines, sign) in [
            ("the next decision would", &self.pending_changes, ""),
            ("no answer, since", &self.explanation, ""),
            ("left out", &left_out, ""),
            ("alternatives", &self.alternatives, ""),
            ("notes", &self.notes, ""),
            ("suggested actions", &self.next_steps, "- "),
        ] {
            if lines.is_empty() {
                continue;
            }
            let _ = writeln!(text, "\n{title}");
            for line in lines {
                let _ = writeln!(text, "  {sign}{}", one_line(line));
            }
        }
    }
}

fn write_package(text: &mut String, package: &Package) {
    let versions = match (&package.installed, &package.chosen) {
        (Some(installed), Some(chosen)) if installed != chosen => format!(" {installed} -> {chosen}"),
        (Some(version), _) | (None, Some(version)) => format!(" {version}"),
        (None, None) => String::new(),
    };
    let _ = writeln!(text, "  {}: {}", one_line(&format!("{}{versions}", package.package)), one_line(&package.state));
    let mut row = |label: &str, value: &str| {
        let _ = writeln!(text, "    {label:<LABEL$}  {}", one_line(value));
    };
    if let Some(runs) = &package.runs {
        row("runs", runs);
    }
    if let Some(drift) = &package.drift {
        row("drift", drift);
    }
    if let Some(message) = &package.message {
        row("message", message);
    }
    if let Some(catalog) = &package.catalog {
        let channel = package.channel.as_ref().map(|channel| format!(", channel {channel}")).unwrap_or_default();
        row("from", &format!("catalog {catalog}{channel}"));
    }
    if !package.reasons.is_empty() {
        row("because", &package.reasons.join("; "));
    }
    if !package.path.is_empty() {
        row("to come", &package.path.join(", "));
    }
    if let Some(message) = &package.deprecated {
        row("deprecated", message);
    }
    if let Some(held_back) = &package.held_back {
        let why = if held_back.explanation.is_empty() { "other packages" } else { &held_back.explanation.join("; ") };
        row("held back", &format!("{} by: {why}", held_back.version));
    }
    if let Some(deployment) = package.bundle_deployment.as_ref().filter(|_| package.exists) {
        let deployment = quoted(deployment);
        row("details", &format!("`chandler status {deployment}`, `chandler tree {deployment}`"));
    }
}
