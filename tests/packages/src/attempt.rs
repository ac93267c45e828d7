//! One installation or upgrade with the command line, following the printed advice.

use std::path::Path;

use anyhow::Context as _;
use chandler_api::{BundleDeployment, ConditionType, find_condition};
use serde_json::{Value, json};

use crate::{
    advice,
    entry::{Entry, Outcome},
    packages::Package,
    plane::{Output, Plane},
};

/// How often advice is followed: a version may change a CRD, a selector and more.
const ROUNDS: usize = 4;
/// The placeholder for a file that does not fit into a ConfigMap.
const TOO_LARGE: &str = "TooLargeForConfigMaps";

/// Why an attempt failed.
struct Problem {
    reason: String,
    message: String,
}

/// Installs or upgrades the package to the version in this directory.
pub(crate) async fn attempt(plane: &Plane, verb: &str, directory: &Path, entry: &mut Entry) -> anyhow::Result<()> {
    let bundle = directory.to_string_lossy();
    let mut output = plane.run_waiting(&command(verb, &entry.package, &bundle)).await?;
    for _ in 0..ROUNDS {
        if output.is_success() {
            entry.outcome = if entry.followed.is_empty() { Outcome::Healthy } else { Outcome::HealthyAfterAdvice };
            return Ok(());
        }
        let problem = problem(&output, plane.deployment(&entry.package).await?.as_ref());
        entry.because(problem.reason.clone(), &problem.message);
        entry.outcome = outcome(&problem);
        match follow(plane, verb, directory, &problem, &output, entry).await? {
            Some(next) => output = next,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// How an attempt with this problem ended. Whether the command noticed before its timeout says nothing: that depends on the machine.
fn outcome(problem: &Problem) -> Outcome {
    let installed = ["RollingOut", "Unhealthy", "ProgressDeadlineExceeded"];
    if installed.contains(&problem.reason.as_str()) { Outcome::Unhealthy } else { Outcome::Refused }
}

fn command<'a>(verb: &'a str, name: &'a str, bundle: &'a str) -> Vec<&'a str> {
    let mut words = vec![verb, name, bundle];
    if verb == "install" {
        words.push("--create-namespace");
    }
    words
}

/// Runs the command that the output suggests. Returns `None` if no suggestion can be followed here.
async fn follow(
    plane: &Plane,
    verb: &str,
    directory: &Path,
    problem: &Problem,
    output: &Output,
    entry: &mut Entry,
) -> anyhow::Result<Option<Output>> {
    let name = entry.package.clone();
    match problem.reason.as_str() {
        TOO_LARGE => {
            entry.follow("push it as an image, and install that");
            let image = plane.push(&name, &Package::version(directory), directory).await?;
            Ok(Some(plane.run_waiting(&command(verb, &name, &image)).await?))
        }
        "RequiredFieldMissing" | "UnknownField" => {
            let Some(mut words) = advice::command(&output.text, &["install", "upgrade"]) else { return Ok(None) };
            if let Some(value) = words.last_mut().and_then(|last| last.strip_suffix("=NAMESPACE").map(str::to_owned)) {
                let watched = watched(&name);
                plane.ensure_namespace(&watched).await?;
                words.pop();
                words.push(format!("{value}={watched}"));
            }
            let added = words.len().saturating_sub(2);
            entry.follow(&words.get(added..).unwrap_or_default().join(" "));
            Ok(Some(plane.run_waiting(&words).await?))
        }
        "UnsafeCRDUpgrade" => approve(plane, output, entry).await,
        "ImmutableField" => {
            let Some(setting) = advice::on_immutable(&problem.message) else { return Ok(None) };
            entry.follow(&format!("spec.rollout.onImmutable: {setting}"));
            let deployment = plane.deployment(&name).await?.context("the BundleDeployment exists")?;
            let patch = json!({"spec": {"rollout": {"onImmutable": combined(&deployment, setting)?}}});
            plane.patch(&name, &patch).await?;
            Ok(Some(plane.run_waiting(&["status", &name, "--watch"]).await?))
        }
        _ => Ok(None),
    }
}

/// Lists the findings about CRDs and approves them, with the printed commands.
async fn approve(plane: &Plane, output: &Output, entry: &mut Entry) -> anyhow::Result<Option<Output>> {
    let mut next = advice::command(&output.text, &["diff"]);
    let mut text = String::new();
    for following in ["approve", "status"] {
        let Some(mut words) = next else {
            entry.why = format!("no command in: {text}");
            return Ok(None);
        };
        let shown = words.join(" ");
        if following == "status" {
            words.push("--yes".to_owned());
        }
        text = plane.run(&words).await?.text;
        entry.follow(&shown);
        next = advice::command(&text, &[following]);
    }
    let Some(words) = next else {
        entry.why = format!("no command in: {text}");
        return Ok(None);
    };
    Ok(Some(plane.run_waiting(&words).await?))
}

/// The setting with the kinds that the spec allows already.
fn combined(deployment: &BundleDeployment, mut setting: Value) -> anyhow::Result<Value> {
    let spec = serde_json::to_value(&deployment.spec)?;
    let known = spec.pointer("/rollout/onImmutable/kinds").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(kinds) = setting.pointer_mut("/kinds").and_then(Value::as_array_mut) {
        kinds.extend(known);
    }
    Ok(setting)
}

/// The namespace that an operator watches which refuses to watch its own.
pub(crate) fn watched(name: &str) -> String {
    format!("{name}-watched")
}

/// The problem in the output of a command, or in the conditions.
fn problem(output: &Output, deployment: Option<&BundleDeployment>) -> Problem {
    let text = output.text.as_str();
    let line = |from: &str| from.lines().next().unwrap_or_default().trim().to_owned();
    if text.contains(" does not fit into ConfigMaps") {
        let cause = text.split_once("cause: ").map_or("", |(_, cause)| cause);
        return Problem { reason: TOO_LARGE.to_owned(), message: line(cause) };
    }
    if let Some((code, rest)) = text.split_once("error[").and_then(|(_, rest)| rest.split_once(']')) {
        let message = rest.split_once(" x ").map_or(rest, |(_, message)| message);
        return Problem { reason: code.to_owned(), message: line(message) };
    }
    if let Some(problem) = deployment.and_then(of_conditions) {
        return problem;
    }
    let message = text.rsplit_once("error: ").map_or(text, |(_, message)| message);
    Problem { reason: "CommandFailed".to_owned(), message: message.to_owned() }
}

/// The reason of `Ready` unless it is True, with the message of the condition that has one.
fn of_conditions(deployment: &BundleDeployment) -> Option<Problem> {
    use ConditionType::{Healthy, Installed, Progressing, Ready, Unpacked};
    let conditions = &deployment.status.as_ref()?.conditions;
    let ready = find_condition(conditions, Ready).filter(|condition| condition.status != "True")?;
    let reason = ready.reason.clone();
    let messages = [Progressing, Ready, Healthy, Installed, Unpacked];
    let messages = messages.into_iter().filter_map(|kind| find_condition(conditions, kind));
    let mut messages = messages.filter(|condition| !condition.message.is_empty());
    let message = messages.clone().find(|condition| condition.reason == reason).or_else(|| messages.next());
    Some(Problem { reason, message: message.map(|condition| condition.message.clone()).unwrap_or_default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_problem_of_a_command_is_its_first_finding() {
        let output = |text: &str| Output { code: Some(1), text: text.to_owned() };
        let text = "error[RequiredFieldMissing]\n\n  x required field \"watchNamespace\" is missing\n  | at config\n\nerror: no\n";
        let found = problem(&output(text), None);
        assert_eq!(
            (found.reason.as_str(), found.message.as_str()),
            ("RequiredFieldMissing", "required field \"watchNamespace\" is missing")
        );
        let found =
            problem(&output("error: ./x does not fit into ConfigMaps\n  cause: a.yaml has 9 bytes\n  hint: b"), None);
        assert_eq!((found.reason.as_str(), found.message.as_str()), (TOO_LARGE, "a.yaml has 9 bytes"));
        assert_eq!(problem(&output("error: no server"), None).message, "no server");
    }
}
