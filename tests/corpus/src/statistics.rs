//! Counts the results, and prints them.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    time::Duration,
};

use chandler_expected::{Finding, Mode, Refusal, Verdict, outcome::messages};

/// How many examples of a class are kept.
const EXAMPLES: usize = 3;
/// The maximum length of a shown example.
const SHOWN: usize = 400;

/// A class of results: its count, with the first examples.
#[derive(Clone, Debug, Default)]
struct Class {
    count: u64,
    examples: Vec<String>,
}

impl Class {
    fn add(&mut self, example: String) {
        self.count += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(example);
        }
    }

    fn merge(&mut self, other: Self) {
        self.count += other.count;
        self.examples.extend(other.examples);
        self.examples.truncate(EXAMPLES);
    }
}

/// The renderings of one mode.
#[derive(Clone, Debug, Default)]
struct Speed {
    bytes: u64,
    times: Vec<Duration>,
}

/// The counts of all results.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    bundles: u64,
    objects: u64,
    same_objects: u64,
    same_refusals: u64,
    differences: BTreeMap<String, Class>,
    refusals: BTreeMap<String, Class>,
    unexplained: BTreeMap<String, Class>,
    speed: BTreeMap<String, Speed>,
}

impl Statistics {
    /// Counts a bundle.
    pub fn bundle(&mut self) {
        self.bundles += 1;
    }

    /// Counts a rendering, with the bytes of its manifests and the number of its objects.
    pub fn rendering(&mut self, mode: Mode, bytes: u64, objects: usize, time: Duration) {
        self.objects += objects as u64;
        let speed = self.speed.entry(mode.to_string()).or_default();
        speed.bytes += bytes;
        speed.times.push(time);
    }

    /// Counts an error, and its incomplete findings.
    pub fn refusal(&mut self, refusal: Refusal, name: &str, mode: Mode, findings: &[Finding]) {
        let code = findings.first().map(|finding| finding.code.as_str()).unwrap_or_default();
        let class = format!("{refusal} {code}");
        self.refusals.entry(class).or_default().add(format!("{name} {mode}: {}", messages(findings)));
        for finding in findings.iter().filter(|finding| !finding.explained) {
            let example = format!("{name} {mode}: {}", finding.message);
            self.unexplained.entry(finding.code.clone()).or_default().add(example);
        }
    }

    /// Counts a comparison.
    pub fn verdict(&mut self, name: &str, mode: Mode, verdict: Verdict) {
        match verdict {
            Verdict::SameObjects => self.same_objects += 1,
            Verdict::SameRefusal(_) => self.same_refusals += 1,
            Verdict::Different { class, text } => {
                self.differences.entry(class).or_default().add(format!("{name} {mode}: {text}"));
            }
        }
    }

    /// Adds the counts of another worker.
    pub fn merge(&mut self, other: Self) {
        self.bundles += other.bundles;
        self.objects += other.objects;
        self.same_objects += other.same_objects;
        self.same_refusals += other.same_refusals;
        for (into, from) in [
            (&mut self.differences, other.differences),
            (&mut self.refusals, other.refusals),
            (&mut self.unexplained, other.unexplained),
        ] {
            for (class, counted) in from {
                into.entry(class).or_default().merge(counted);
            }
        }
        for (mode, speed) in other.speed {
            let into = self.speed.entry(mode).or_default();
            into.bytes += speed.bytes;
            into.times.extend(speed.times);
        }
    }

    /// The megabytes (of a million bytes) of manifests in all renderings.
    pub fn megabytes(&self) -> f64 {
        megabytes(self.speed.values().map(|speed| speed.bytes).sum())
    }

    /// How many comparisons showed a difference.
    pub fn different(&self) -> u64 {
        self.differences.values().map(|class| class.count).sum()
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let renderings: usize = self.speed.values().map(|speed| speed.times.len()).sum();
        writeln!(f, "{} bundles, {renderings} renderings, {} objects", self.bundles, self.objects)?;
        let compared = self.same_objects + self.same_refusals + self.different();
        if compared > 0 {
            writeln!(
                f,
                "{} of {compared} agree ({}): {} with the same objects, {} refused alike; {} differ",
                self.same_objects + self.same_refusals,
                percentage(self.same_objects + self.same_refusals, compared),
                self.same_objects,
                self.same_refusals,
                self.different()
            )?;
        }
        classes(f, "differences", &self.differences)?;
        classes(f, "refusals", &self.refusals)?;
        classes(f, "findings without a place or help", &self.unexplained)?;
        writeln!(
            f,
            "\n{:<14} {:>8} {:>9} {:>11} {:>9} {:>9} {:>9} {:>9}",
            "mode", "bundles", "MB", "bundles/s", "MB/s", "p50 ms", "p99 ms", "max ms"
        )?;
        for (mode, speed) in &self.speed {
            speed.line(mode, f)?;
        }
        f.write_str("(per core: over the time that the renderings took, not over the time of the run)")
    }
}

impl Speed {
    fn line(&self, mode: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds: f64 = self.times.iter().map(Duration::as_secs_f64).sum::<f64>().max(f64::EPSILON);
        let mut times = self.times.clone();
        times.sort_unstable();
        let quantile = |percent: usize| {
            let index = times.len().saturating_mul(percent) / 100;
            times.get(index.min(times.len().saturating_sub(1))).map_or(0.0, Duration::as_secs_f64) * 1e3
        };
        #[expect(clippy::cast_precision_loss, reason = "figures to read")]
        let (megabytes, count) = (megabytes(self.bytes), times.len() as f64);
        writeln!(
            f,
            "{mode:<14} {:>8} {megabytes:>9.1} {:>11.1} {:>9.1} {:>9.2} {:>9.2} {:>9.2}",
            times.len(),
            count / seconds,
            megabytes / seconds,
            quantile(50),
            quantile(99),
            quantile(100)
        )
    }
}

fn classes(f: &mut fmt::Formatter<'_>, title: &str, classes: &BTreeMap<String, Class>) -> fmt::Result {
    if classes.is_empty() {
        return Ok(());
    }
    writeln!(f, "\n{title}:")?;
    let mut sorted: Vec<_> = classes.iter().collect();
    sorted.sort_by_key(|(name, class)| (std::cmp::Reverse(class.count), *name));
    for (name, class) in sorted {
        writeln!(f, "{:>7}  {name}", class.count)?;
        for example in &class.examples {
            let mut shown: String = example.chars().take(SHOWN).collect();
            if shown.len() < example.len() {
                shown.write_char('…')?;
            }
            writeln!(f, "         {shown}")?;
        }
    }
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "figures to read")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn percentage(part: u64, of: u64) -> String {
    // Rounded down, so that only full agreement is 100 %.
    let tenths = part.saturating_mul(1000) / of.max(1);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_added_up_and_shown() {
        let mode: Mode = "all".parse().unwrap();
        let mut statistics = Statistics::default();
        for index in 0..5 {
            statistics.bundle();
            statistics.rendering(mode, 1_000_000, 10, Duration::from_millis(100));
            let verdict = match index {
                0 => Verdict::SameObjects,
                1 => Verdict::SameRefusal(Refusal::Content),
                _ => Verdict::Different { class: "Role /rules".into(), text: "want 1, got 2".into() },
            };
            statistics.verdict(&format!("bundle-{index}"), mode, verdict);
        }
        let mut all = Statistics::default();
        all.refusal(Refusal::Content, "bundle-1", mode, &[Finding::text("no name")]);
        all.merge(statistics);
        assert_eq!(all.different(), 3);
        let text = all.to_string();
        for line in [
            "5 bundles, 5 renderings, 50 objects",
            "2 of 5 agree (40.0 %): 1 with the same objects, 1 refused alike; 3 differ",
            "      3  Role /rules",
            "         bundle-2 all: want 1, got 2",
            "         bundle-1 all: no name",
            "all                   5       5.0        10.0      10.0    100.00    100.00    100.00",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
