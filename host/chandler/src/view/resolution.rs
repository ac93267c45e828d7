//! What the resolver decides, as a table, sentences and pictures.

use std::{collections::BTreeMap, fmt::Write as _};

use chandler_resolver::{Change, Decision, Edge, Explanation, Installed, Line, Member, Reason, what_if::Alternative};

use super::{
    error::CommandError,
    picture::{self, Arrow},
    table::{self, Column, Fit, or_dash},
    text::{count, one_line},
    tree::{Branch, Mark},
};

/// The table of a decision.
pub fn table(decision: &Decision, installed: &[Installed], width: Option<usize>) -> String {
    let columns: [Column<(&Member, &[Installed])>; 6] = [
        Column::new("PACKAGE", Fit::Full, |(member, _)| member.package.clone()),
        Column::new("VERSION", Fit::Full, |(member, _)| version(member)),
        Column::new("CATALOG", Fit::Drop, |(member, _)| or_dash(member.catalog.as_ref())),
        Column::new("CHANNEL", Fit::Drop, |(member, _)| or_dash(member.channel.as_ref())),
        Column::new("CHANGE", Fit::End(12), |(member, installed)| change(member, installed)),
        Column::new("WHY", Fit::End(12), |(member, _)| reasons(member).join("; ")),
    ];
    let rows: Vec<_> = decision.members.iter().map(|member| (member, installed)).collect();
    table::text(&columns, &rows, width)
}

/// A version with its release.
pub fn version(member: &Member) -> String {
    let release = member.release.as_deref().map(|release| format!("+{release}"));
    format!("{}{}", member.version, release.unwrap_or_default())
}

/// What happens to a package: `upgrade from 1.0.0 by 1.1.0`.
fn change(member: &Member, installed: &[Installed]) -> String {
    let from = installed.iter().find(|it| it.package == member.package).map(|it| format!(" from {}", it.version));
    let word = match member.change {
        Change::Keep => return "keep".to_owned(),
        Change::Install => return "install".to_owned(),
        Change::Upgrade => "upgrade",
        Change::Downgrade => "downgrade",
    };
    // The last step is the version itself.
    let between = member.steps.split_last().map_or(&[][..], |(_, between)| between);
    let between: Vec<&str> = between.iter().map(|step| step.version.as_str()).collect();
    let by = if between.is_empty() { String::new() } else { format!(" by {}", between.join(", ")) };
    one_line(&format!("{word}{}{by}", from.unwrap_or_default()))
}

fn reasons(member: &Member) -> Vec<String> {
    let text = |reason: &Reason| match reason {
        Reason::Requested { range } if range.is_empty() => "requested".to_owned(),
        Reason::Requested { range } => format!("requested {range}"),
        Reason::Installed => "installed".to_owned(),
        Reason::NeededBy { package, version, need } => format!("{package} {version} needs {need}"),
        Reason::Constraint { need } => format!("a constraint asks for {need}"),
    };
    member.reasons.iter().map(text).collect()
}

/// What users should know of a decision, beside the table: a line each.
pub fn remarks(decision: &Decision) -> Vec<String> {
    let mut lines = Vec::new();
    for member in &decision.members {
        if let Some(message) = &member.deprecated {
            lines.push(format!("{} {} is deprecated: {message}", member.package, version(member)));
        }
    }
    for member in &decision.members {
        if let Some(held_back) = &member.held_back {
            let why = if held_back.by.is_empty() { "other packages".to_owned() } else { held_back.by.join("; ") };
            let (package, newer) = (&member.package, &held_back.version);
            lines.push(format!("{package} {} stays behind {newer}, which is held back by: {why}", version(member)));
        }
    }
    for missing in &decision.missing {
        lines.push(format!("not installed: {} {}: {}", missing.package, version(missing), reasons(missing).join("; ")));
    }
    lines.extend(decision.unneeded.iter().map(|package| format!("nothing needs {package} any more")));
    lines.extend(decision.notes.iter().cloned());
    lines.iter().map(|line| one_line(line)).collect()
}

/// Why each member is chosen, and how it is reached, as indented lines.
pub fn explained(decision: &Decision, installed: &[Installed]) -> String {
    let mut text = String::new();
    for member in &decision.members {
        let place = match (&member.catalog, &member.channel) {
            (Some(catalog), Some(channel)) => format!(" from catalog {catalog}, channel {channel}"),
            (Some(catalog), None) => format!(" from catalog {catalog}, in no channel"),
            (None, _) => " is in no catalog".to_owned(),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", one_line(&format!("{} {}{place}", member.package, version(member))));
        for reason in reasons(member) {
            let _ = writeln!(text, "  because: {}", one_line(&reason));
        }
        let _ = writeln!(text, "  change: {}", change(member, installed));
        for step in &member.steps {
            let channel = step.channel.as_deref().map(|channel| format!(" in channel {channel}")).unwrap_or_default();
            let _ = writeln!(text, "  step: {}", one_line(&format!("{} {}{channel}", step.name, edge(step.edge))));
        }
    }
    text
}

fn edge(edge: Edge) -> &'static str {
    match edge {
        Edge::Replaces => "replaces the one before",
        Edge::Skips => "skips the one before",
        Edge::SkipRange => "has the version before in its skipRange",
        Edge::Forced => "is forced; no channel provides this change",
    }
}

/// The error that explains why nothing fits.
pub fn refused(explanation: &Explanation, hint: Option<&str>) -> CommandError {
    let error = if explanation.lines.is_empty() {
        CommandError::unsatisfiable(one_line(&explanation.message))
    } else {
        let error = CommandError::unsatisfiable("no set of bundles fits");
        explanation.lines.iter().fold(error, |error, line| error.cause(one_line(&line.to_string())))
    };
    let error =
        explanation.near_misses.iter().fold(error, |error, miss| error.hint(format!("near miss: {}", one_line(miss))));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// A kind that a refused set needs, as `--serves` takes it.
pub fn missing_kind(explanation: &Explanation) -> Option<&str> {
    explanation.lines.iter().find_map(|line| match line {
        Line::Needs { need, .. } | Line::Constraint { need } => {
            need.strip_prefix("kind ").filter(|kind| !kind.contains(' '))
        }
        _ => None,
    })
}

/// The answers to changed questions.
pub fn alternatives(alternatives: &[Alternative]) -> String {
    if alternatives.is_empty() {
        return "what if: no single change of the question gives another answer\n".to_owned();
    }
    let mut text = String::new();
    for alternative in alternatives {
        let members: Vec<String> =
            alternative.decision.members.iter().map(|it| format!("{} {}", it.package, version(it))).collect();
        let _ = writeln!(text, "what if {}: {}", one_line(&alternative.change), one_line(&members.join(", ")));
    }
    text
}

/// The title of pictures.
fn title(decision: &Decision) -> String {
    format!("{} to install", count(decision.members.iter().filter(|it| it.change != Change::Keep).count(), "bundle"))
}

/// Members that are needed, each with the member that needs it and what it needs.
fn needs(decision: &Decision) -> Vec<(usize, usize, &str)> {
    let index: BTreeMap<&str, usize> =
        decision.members.iter().enumerate().map(|(index, member)| (member.package.as_str(), index)).collect();
    let mut needs = Vec::new();
    for (to, member) in decision.members.iter().enumerate() {
        for reason in &member.reasons {
            if let Reason::NeededBy { package, need, .. } = reason
                && let Some(from) = index.get(package.as_str())
            {
                needs.push((*from, to, need.as_str()));
            }
        }
    }
    needs
}

/// The dependency graph as an SVG image: a row for each bundle, an arrow to each that it needs.
pub fn svg(decision: &Decision, installed: &[Installed]) -> String {
    let row = |member: &Member| Branch {
        label: one_line(&format!("{} {}", member.package, version(member))),
        mark: Some(if member.change == Change::Keep { Mark::Installed } else { Mark::Next }),
        message: Some(format!("{}; {}", change(member, installed), one_line(&reasons(member).join("; ")))),
        branches: Vec::new(),
    };
    let rows: Vec<Branch> = decision.members.iter().map(row).collect();
    let arrows: Vec<Arrow> =
        needs(decision).into_iter().map(|(from, to, _)| Arrow { from, to, dashed: false }).collect();
    picture::graph_svg(&title(decision), &rows, &arrows)
}

/// The dependency graph as a Mermaid flowchart.
pub fn mermaid(decision: &Decision, installed: &[Installed]) -> String {
    let mut text = String::from("flowchart LR\n");
    for (index, member) in decision.members.iter().enumerate() {
        let label = picture::mermaid_text(&one_line(&format!("{} {}", member.package, version(member))));
        let change = picture::mermaid_text(&change(member, installed));
        let class = if member.change == Change::Keep { "installed" } else { "next" };
        let _ = writeln!(text, "  n{index}[\"{label}<br/>{change}\"]:::{class}");
    }
    for (from, to, need) in needs(decision) {
        let _ = writeln!(text, "  n{from} -->|\"{}\"| n{to}", picture::mermaid_text(&one_line(need)));
    }
    text.push_str(
        "  classDef installed stroke:#1a7f37,stroke-width:2px\n  classDef next stroke:#bf8700,stroke-width:2px\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use chandler_resolver::{MemoryCatalogs, Problem, Source, resolve, what_if::what_if};
    use serde_json::{Value, json};

    use super::*;

    fn bundle(package: &str, version: &str, properties: &[Value]) -> Value {
        let own = json!({"type": "olm.package", "value": {"packageName": package, "version": version}});
        let properties: Vec<&Value> = [&own].into_iter().chain(properties).collect();
        json!({"schema": "olm.bundle", "package": package, "name": format!("{package}.v{version}"),
            "image": format!("example.com/{package}:{version}"), "properties": properties})
    }

    fn channel(package: &str, entries: Value) -> [Value; 2] {
        [
            json!({"schema": "olm.package", "name": package, "defaultChannel": "stable"}),
            json!({"schema": "olm.channel", "package": package, "name": "stable", "entries": entries}),
        ]
    }

    fn catalogs() -> MemoryCatalogs {
        let needs =
            json!({"type": "olm.package.required", "value": {"packageName": "database", "versionRange": ">=2.0.0"}});
        let metas = [
            channel("shop", json!([{"name": "shop.v3.1.0"}])),
            channel(
                "database",
                json!([
                {"name": "database.v1.0.0"}, {"name": "database.v1.5.0", "replaces": "database.v1.0.0"},
                {"name": "database.v2.0.0", "replaces": "database.v1.5.0"}]),
            ),
        ];
        let bundles = [
            bundle("shop", "3.1.0", &[needs]),
            bundle("database", "1.0.0", &[]),
            bundle("database", "1.5.0", &[]),
            bundle("database", "2.0.0", &[]),
        ];
        MemoryCatalogs::new().with("c", metas.into_iter().flatten().chain(bundles))
    }

    fn problem(hold: &str) -> Problem {
        let mut problem: Problem = serde_json::from_value(json!({"required": [{"package": "shop"}],
            "installed": [{"package": "database", "name": "database.v1.0.0", "version": "1.0.0", "hold": hold}]}))
        .unwrap();
        problem.catalogs = vec![Source { name: "c".to_owned(), ..Source::default() }];
        problem
    }

    #[test]
    fn a_decision_is_a_table_with_reasons_and_a_graph() {
        let problem = problem("Flexible");
        let answer = resolve(&problem, &catalogs()).unwrap();
        let decision = answer.decision().unwrap();
        insta::assert_snapshot!(table(decision, &problem.installed, None), @r"
        PACKAGE   VERSION  CATALOG  CHANNEL  CHANGE                       WHY
        database  2.0.0    c        stable   upgrade from 1.0.0 by 1.5.0  installed; shop 3.1.0 needs package database >=2.0.0
        shop      3.1.0    c        stable   install                      requested
        ");
        insta::assert_snapshot!(table(decision, &problem.installed, Some(60)), @r"
        PACKAGE   VERSION  CHANGE                       WHY
        database  2.0.0    upgrade from 1.0.0 by 1.5.0  installed; …
        shop      3.1.0    install                      requested
        ");
        insta::assert_snapshot!(explained(decision, &problem.installed), @r"
        database 2.0.0 from catalog c, channel stable
          because: installed
          because: shop 3.1.0 needs package database >=2.0.0
          change: upgrade from 1.0.0 by 1.5.0
          step: database.v1.5.0 replaces the one before in channel stable
          step: database.v2.0.0 replaces the one before in channel stable
        shop 3.1.0 from catalog c, channel stable
          because: requested
          change: install
        ");
        insta::assert_snapshot!(mermaid(decision, &problem.installed), @r#"
        flowchart LR
          n0["database 2.0.0<br/>upgrade from 1.0.0 by 1.5.0"]:::next
          n1["shop 3.1.0<br/>install"]:::next
          n1 -->|"package database #62;=2.0.0"| n0
          classDef installed stroke:#1a7f37,stroke-width:2px
          classDef next stroke:#bf8700,stroke-width:2px
        "#);
        let image = svg(decision, &problem.installed);
        assert_eq!((image.matches("<circle").count(), image.matches("marker-end").count()), (2, 1), "{image}");
    }

    #[test]
    fn a_refusal_has_a_cause_for_each_line_and_what_would_help() {
        let problem = problem("Pinned");
        let answer = resolve(&problem, &catalogs()).unwrap();
        insta::assert_snapshot!(refused(answer.refusal().unwrap(), None).to_string(), @r"
        error: no set of bundles fits
          cause: package shop is required
          cause: shop 3.1.0 needs package database >=2.0.0
          cause: database 1.0.0 is installed and pinned
          cause: only one version of database can be installed
          hint: near miss: shop 3.1.0 would do but needs package database >=2.0.0, which package database in catalog c provides from 2.0.0, and database 1.0.0 is installed and pinned
        ");
        let others = what_if(&problem, &answer, &catalogs()).unwrap();
        insta::assert_snapshot!(alternatives(&others), @r"
        what if database 1.0.0 could change: database 2.0.0, shop 3.1.0
        what if dependencies were ignored: database 1.0.0, shop 3.1.0
        ");
    }
}
