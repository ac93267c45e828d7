//! `--fault`: which requests the API server of `chandler dev` makes fail.

use std::fmt::Write as _;

use chandler_devcluster::{
    Fault,
    faults::text::{CONDITIONS, EFFECTS},
};

/// The faults that the API server of `chandler dev` injects.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Faults")]
pub struct FaultArguments {
    /// Make requests of the controller and other clients fail or wait. Repeatable
    #[arg(long = "fault", value_name = "EFFECT[=VALUE][,CONDITION=VALUE]...", long_help = help())]
    pub faults: Vec<Fault>,
}

/// The help: one line for each effect and condition.
fn help() -> String {
    let mut text = String::from(
        "Make requests of the controller and other clients fail or wait. Repeatable\n\n\
         A fault applies to every request that meets all of its conditions. Requests of `chandler dev` itself are exempt, and so are \
         requests of simulated workloads unless `simulation=true`. `kubectl get --raw /chandler.dev/faults` lists the faults and how \
         often each was injected; `kubectl create --raw` and `kubectl delete --raw` add and remove faults.\n",
    );
    for (title, rows) in [("Effects", EFFECTS), ("Conditions", CONDITIONS)] {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{title}:\n");
        for (name, value, meaning) in rows {
            let _ = writeln!(text, "  {:<29}{meaning}", format!("{name}{value}"));
        }
    }
    text.push_str("\nWrite times as 200ms, 2s or 1m. In values, write a comma as %2C.");
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
    fn faults_are_parsed_and_mistakes_are_explained() {
        let parse = |faults: &[&str]| Command::try_parse_from(["x"].iter().chain(faults));
        let command = parse(&["--fault", "conflict,verb=patch,times=3", "--fault", "latency=10ms..1s"]).unwrap();
        let texts: Vec<String> = command.faults.faults.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["conflict,verb=patch,times=3", "latency=10ms..1s"]);
        let error = parse(&["--fault", "conflict,verbs=patch"]).unwrap_err().to_string();
        assert!(error.contains("\"verbs\"") && error.contains("did you mean verb?"), "{error}");
    }

    #[test]
    fn the_help_has_a_line_for_each_effect_and_condition() {
        let help = help();
        for (name, _, meaning) in EFFECTS.iter().chain(CONDITIONS) {
            let lines: Vec<&str> = help.lines().filter(|line| line.trim_start().starts_with(name)).collect();
            assert!(lines.iter().any(|line| line.ends_with(meaning) && line.len() <= 100), "{name}: {lines:?}");
        }
    }
}
