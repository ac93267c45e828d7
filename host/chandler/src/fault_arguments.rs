//! `--fault`: what is to fail while a bundle is tried.

use std::fmt::Write as _;

use chandler_devcluster::{
    DevCluster, Fault,
    faults::text::{CONDITIONS, EFFECTS},
};

/// What the API server of `chandler dev` does to clients.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Faults")]
pub struct FaultArguments {
    /// Make requests of the controller and other clients fail; may be given several times
    #[arg(long = "fault", value_name = "EFFECT[=VALUE][,CONDITION=VALUE]...", long_help = help())]
    pub faults: Vec<Fault>,
}

impl FaultArguments {
    /// Lets them strike from now on.
    pub fn inject(&self, cluster: &DevCluster) {
        for fault in &self.faults {
            cluster.inject(fault.clone());
        }
    }

    /// How often each of them struck; nothing when there are none.
    pub fn report(&self, cluster: &DevCluster) -> Vec<String> {
        let reports = if self.faults.is_empty() { Vec::new() } else { cluster.faults() };
        let line = |(fault, struck): (&Fault, u64)| {
            let times = if struck == 1 { "once".to_owned() } else { format!("{struck} times") };
            format!("{fault} struck {times}")
        };
        reports.iter().map(|report| line((&report.fault, report.struck))).collect()
    }
}

/// Effects and conditions, one a line.
fn help() -> String {
    let mut text = String::from(
        "Make requests of the controller and other clients fail; may be given several times\n\n\
         Requests of this command itself are spared, and those of simulated workloads unless `simulation=true`. A fault strikes \
         every request for which all of its conditions hold. Which of them wait, and how often they struck, is seen and changed \
         at /chandler.dev/faults: `kubectl get --raw /chandler.dev/faults`.\n",
    );
    for (title, rows) in [("Effects", EFFECTS), ("Conditions", CONDITIONS)] {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{title}:\n");
        for (name, value, meaning) in rows {
            let _ = writeln!(text, "  {:<29}{meaning}", format!("{name}{value}"));
        }
    }
    text.push_str("\nTimes are written 200ms, 2s, 1m. In values, a comma is %2C.");
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Command {
        #[command(flatten)]
        faults: FaultArguments,
    }

    #[test]
    fn faults_are_read_and_mistakes_explained() {
        let parse = |faults: &[&str]| Command::try_parse_from(["x"].iter().chain(faults));
        let command = parse(&["--fault", "conflict,verb=patch,times=3", "--fault", "latency=10ms..1s"]).unwrap();
        let texts: Vec<String> = command.faults.faults.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["conflict,verb=patch,times=3", "latency=10ms..1s"]);
        let error = parse(&["--fault", "conflict,verbs=patch"]).unwrap_err().to_string();
        assert!(error.contains("\"verbs\" is not a condition: did you mean verb?"), "{error}");
    }

    #[test]
    fn help_has_a_line_for_each() {
        let help = help();
        for (name, _, meaning) in EFFECTS.iter().chain(CONDITIONS) {
            let lines: Vec<&str> = help.lines().filter(|line| line.trim_start().starts_with(name)).collect();
            assert!(lines.iter().any(|line| line.ends_with(meaning) && line.len() <= 100), "{name}: {lines:?}");
        }
    }
}
