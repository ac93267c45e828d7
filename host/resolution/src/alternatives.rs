//! What would be chosen if a part of the spec were different.

use std::collections::BTreeMap;

use chandler_resolver::{Answer, Decision, Hold, Installed, Problem, ResolveError, Upgrades};

/// The most lines.
const LINES: usize = 20;

/// Changes of a question that lift what holds versions back, each with what would be chosen then: a line for each package. A change
/// without effect, or without a decision, has no line. A question whose answer exceeds the budget has none.
pub fn alternatives(
    problem: &Problem,
    answer: &Result<Answer, ResolveError>,
    ask: impl Fn(&Problem) -> Result<Answer, ResolveError>,
) -> Vec<String> {
    if matches!(answer, Err(ResolveError::BudgetExceeded(_))) {
        // The conflict again, with more candidates.
        return Vec::new();
    }
    let before = answer.as_ref().ok().and_then(Answer::decision).map(versions).unwrap_or_default();
    let mut lines = Vec::new();
    for (change, lifted) in changes(problem) {
        let Ok(Answer::Decision(decision)) = ask(&lifted) else { continue };
        // Packages of other sets do not change.
        for (package, version) in versions(&decision).into_iter().filter(|(package, _)| !is_fixed(problem, package)) {
            match before.get(&package) {
                Some(now) if *now == version => {}
                Some(now) => lines.push(format!("{change}: {package} {version} instead of {now}")),
                None => lines.push(format!("{change}: {package} {version}")),
            }
        }
    }
    if lines.len() > LINES {
        let more = lines.len() - LINES + 1;
        lines.truncate(LINES - 1);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The changed questions, each with the change of the spec.
fn changes(problem: &Problem) -> Vec<(&'static str, Problem)> {
    let mut changes = Vec::new();
    if problem.policy.upgrades == Upgrades::CatalogProvided && !problem.installed.is_empty() {
        let mut lifted = problem.clone();
        lifted.policy.upgrades = Upgrades::SelfCertified;
        changes.push(("with upgrades: SelfCertified", lifted));
    }
    let stays = |installed: &Installed| matches!(installed.hold, Hold::Flexible | Hold::Yielding);
    if problem.installed.iter().any(|it| stays(it) && it.automatic) {
        let mut lifted = problem.clone();
        for installed in lifted.installed.iter_mut().filter(|it| stays(it)) {
            installed.hold = Hold::Newest;
        }
        changes.push(("with dependencyUpgrades: Latest", lifted));
    }
    let is_limited =
        |required: &chandler_resolver::Required| !required.range.is_empty() || !required.channels.is_empty();
    if problem.required.iter().any(is_limited) {
        let mut lifted = problem.clone();
        for required in &mut lifted.required {
            required.range.clear();
            required.channels.clear();
        }
        changes.push(("without version and channels", lifted));
    }
    changes
}

/// Whether a package is installed, and a change of the spec leaves it as it is.
fn is_fixed(problem: &Problem, package: &str) -> bool {
    problem.installed.iter().any(|it| it.package == package && it.hold == Hold::Pinned)
        && !problem.required.iter().any(|it| it.package == package)
}

fn versions(decision: &Decision) -> BTreeMap<String, String> {
    decision.members.iter().map(|member| (member.package.clone(), member.version.clone())).collect()
}

#[cfg(test)]
mod tests {
    use chandler_resolver::{MemoryCatalogs, resolve};
    use serde_json::{Value, json};

    use super::*;

    fn catalogs() -> MemoryCatalogs {
        let bundle = |version: &str| {
            json!({"schema": "olm.bundle", "package": "app", "name": format!("app.v{version}"), "image": "example.com/app",
                   "properties": [{"type": "olm.package", "value": {"packageName": "app", "version": version}}]})
        };
        let entry = |version: &str| json!({"name": format!("app.v{version}")});
        let channel = |name: &str, entries: Vec<Value>| json!({"schema": "olm.channel", "package": "app", "name": name, "entries": entries});
        let replaces = json!({"name": "app.v1.1.0", "replaces": "app.v1.0.0"});
        MemoryCatalogs::new().with(
            "main",
            [
                json!({"schema": "olm.package", "name": "app", "defaultChannel": "stable"}),
                channel("stable", vec![entry("1.0.0"), replaces]),
                channel("next", vec![entry("2.0.0")]),
                bundle("1.0.0"),
                bundle("1.1.0"),
                bundle("2.0.0"),
            ],
        )
    }

    #[test]
    fn a_dependency_that_stays_is_named() {
        for (hold, expected) in [
            ("Flexible", &["with dependencyUpgrades: Latest: app 1.1.0 instead of 1.0.0"][..]),
            ("Yielding", &["with dependencyUpgrades: Latest: app 1.1.0 instead of 1.0.0"]),
            ("Newest", &[]),
            ("Pinned", &[]),
        ] {
            let app =
                json!({"package": "app", "name": "app.v1.0.0", "version": "1.0.0", "hold": hold, "automatic": true});
            let found = of(json!({"installed": [app], "catalogs": [{"name": "main"}]}));
            let found: Vec<&String> = found.iter().filter(|it| it.contains("dependencyUpgrades")).collect();
            assert_eq!(found, expected, "{hold}");
        }
    }

    fn of(problem: Value) -> Vec<String> {
        let problem: Problem = serde_json::from_value(problem).unwrap();
        let catalogs = catalogs();
        let ask = |problem: &Problem| resolve(problem, &catalogs);
        alternatives(&problem, &ask(&problem), ask)
    }

    #[test]
    fn a_lifted_limit_has_a_line_if_it_changes_the_decision() {
        let catalogs = json!([{"name": "main"}]);
        let installed = json!([{"package": "app", "name": "app.v1.0.0", "version": "1.0.0", "hold": "Flexible"}]);
        assert_eq!(of(json!({"required": [{"package": "app"}], "catalogs": catalogs})), [""; 0]);
        let limited = json!({"required": [{"package": "app", "range": "1.0.0"}], "catalogs": catalogs});
        assert_eq!(of(limited), ["without version and channels: app 1.1.0 instead of 1.0.0"]);
        let blocked = json!({"required": [{"package": "app", "channels": ["next"]}], "installed": installed, "catalogs": catalogs});
        let found = of(blocked);
        assert!(found.contains(&"with upgrades: SelfCertified: app 2.0.0".to_owned()), "{found:?}");
        assert!(found.contains(&"without version and channels: app 1.1.0".to_owned()), "{found:?}");
    }
}
