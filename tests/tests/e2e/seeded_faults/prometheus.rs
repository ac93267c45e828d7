//! Evaluates the queries of the dashboard with the engine of Prometheus: `promtool test rules` prints what an expression has.

use std::{collections::BTreeMap, fs, path::Path, process::Command};

use chandler_tests::bundles::workspace;
use serde_json::{Value, json};

/// A query of the dashboard, and the title of its panel.
pub(super) struct Query {
    pub(super) panel: String,
    expression: String,
}

/// Every query of the dashboard.
pub(super) fn queries() -> Vec<Query> {
    let text = fs::read_to_string(workspace().join("deploy/monitoring-dashboard.yaml")).expect("the dashboard");
    let map: Value = serde_saphyr::from_str(&text).expect("YAML");
    let dashboard: Value =
        serde_json::from_str(map["data"]["chandler.json"].as_str().expect("a dashboard")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let queries = panels.iter().flat_map(|panel| {
        let title = panel["title"].as_str().expect("a title").to_owned();
        panel["targets"].as_array().expect("targets").iter().map(move |target| Query {
            panel: title.clone(),
            expression: target["expr"].as_str().expect("an expression").to_owned(),
        })
    });
    queries.collect()
}

/// The series of one scrape, and their values.
type Scrape = BTreeMap<String, String>;

/// Reads an exposition. Each series gets the labels that Prometheus adds.
fn scrape(exposition: &str) -> Scrape {
    let lines = exposition.lines().filter(|line| !line.starts_with('#'));
    let series = lines.filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        let target = r#"job="chandler-metrics",pod="a""#;
        let series = match series.split_once('{') {
            Some((name, labels)) => format!("{name}{{{target},{labels}"),
            None => format!("{series}{{{target}}}"),
        };
        Some((series, value.to_owned()))
    });
    series.collect()
}

/// What was scraped in one situation: before, after the fault acted, and after it acted again. A counter that is new has no rate before it
/// increases, so two scrapes are needed.
pub(super) struct Situation<'a> {
    pub(super) name: &'static str,
    pub(super) scrapes: [&'a str; 3],
}

impl Situation<'_> {
    /// The group of tests for promtool: a scrape a minute, and every query at the end.
    fn group(&self, index: usize, queries: &[Query]) -> Value {
        let scrapes = self.scrapes.map(scrape);
        let mut series: Vec<&String> = scrapes.iter().flat_map(BTreeMap::keys).collect();
        series.sort();
        series.dedup();
        let input = series.into_iter().map(|series| {
            let minutes = scrapes.iter().zip([6, 2, 2]).scan(false, |known, (scrape, minutes)| {
                let value = scrape.get(series);
                let absent = if *known { "stale" } else { "_" };
                *known |= value.is_some();
                Some(vec![value.map_or(absent, String::as_str); minutes])
            });
            let values: Vec<&str> = minutes.flatten().collect();
            json!({"series": series, "values": values.join(" ")})
        });
        let tests = queries.iter().enumerate().map(|(number, query)| {
            json!({"expr": format!("{} # {index} {number} ", query.expression), "eval_time": "9m", "exp_samples": []})
        });
        json!({
            "name": self.name, "interval": "1m",
            "input_series": input.collect::<Vec<_>>(), "promql_expr_test": tests.collect::<Vec<_>>(),
        })
    }
}

/// A sample of the result of a query.
#[derive(Clone, Debug)]
pub(super) struct Sample {
    labels: String,
    pub(super) value: f64,
}

impl Sample {
    /// Whether it has all of these labels.
    pub(super) fn has(&self, labels: &[(&str, &str)]) -> bool {
        labels.iter().all(|(label, value)| self.labels.contains(&format!("{label}=\"{value}\"")))
    }
}

/// The samples of each query (by its place in `queries`) in each situation.
pub(super) fn evaluate(
    promtool: &Path,
    situations: &[Situation<'_>],
    queries: &[Query],
) -> BTreeMap<(usize, usize), Vec<Sample>> {
    let groups: Vec<Value> =
        situations.iter().enumerate().map(|(index, situation)| situation.group(index, queries)).collect();
    let directory = tempfile::tempdir().expect("a directory");
    // JSON is YAML.
    let tests = json!({"evaluation_interval": "1m", "tests": groups}).to_string();
    fs::write(directory.path().join("tests.yaml"), tests).expect("a file");
    let run = Command::new(promtool).args(["test", "rules", "tests.yaml"]).current_dir(directory.path()).output();
    let run = run.expect("promtool runs");
    let text = String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned();
    // Every expression with a result differs from the expectation, which is empty.
    let mut found = BTreeMap::new();
    let mut key = None;
    for line in text.lines().map(str::trim) {
        assert!(!line.contains("error"), "{text}");
        if let Some(test) = line.strip_prefix("expr: ") {
            let mut numbers = test.rsplit_once(" # ").expect("the comment").1.split(' ');
            let mut number = || numbers.next().and_then(|number| number.parse().ok()).expect("a number");
            key = Some((number(), number()));
        } else if let (Some(got), Some(key)) = (line.strip_prefix("got: "), key) {
            found.insert(key, samples(got));
        }
    }
    assert!(!found.is_empty(), "{text}");
    found
}

/// Reads `{a="b"} 1E+00, name{} 2E+00`.
fn samples(got: &str) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut rest = got;
    while !rest.is_empty() {
        let (series, after) = rest.split_once("} ").unwrap_or(("", rest));
        let labels = series.split_once('{').map_or("", |(_, labels)| labels);
        let (value, next) = after.split_once(", ").unwrap_or((after, ""));
        let value = value.trim().parse().unwrap_or_else(|error| panic!("{error}: {value:?} in {got}"));
        samples.push(Sample { labels: labels.to_owned(), value });
        rest = next;
    }
    samples
}
