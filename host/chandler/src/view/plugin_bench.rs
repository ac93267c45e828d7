//! The report of `chandler plugin bench`.

use chandler_conformance::bench::{Measurement, Times};
use indicatif::HumanBytes;
use serde::Serialize;

use super::table::{self, Column, Fit};

/// What was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BenchReport {
    /// The digest of the component.
    pub component: String,
    /// How it was compiled; `None` for a built-in class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compile: Option<Compiled>,
    /// The calls.
    #[serde(flatten)]
    pub measurement: Measurement,
}

/// The compilation of a component.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Compiled {
    /// The size of the component.
    pub bytes: usize,
    /// How long it took on the wall.
    pub milliseconds: f64,
}

struct Row(&'static str, Times);

const COLUMNS: [Column<Row>; 5] = [
    Column::new("MILLISECONDS", Fit::Full, |row| row.0.to_owned()),
    Column::new("MINIMUM", Fit::Full, |row| format!("{:.3}", row.1.minimum)),
    Column::new("MEDIAN", Fit::Full, |row| format!("{:.3}", row.1.median)),
    Column::new("P95", Fit::Full, |row| format!("{:.3}", row.1.p95)),
    Column::new("MAXIMUM", Fit::Full, |row| format!("{:.3}", row.1.maximum)),
];

impl BenchReport {
    /// The report as text.
    pub fn text(&self) -> String {
        let Measurement { smallest_call, detect, provision, computed, .. } = self.measurement;
        let rows = [
            Row("smallest call", smallest_call),
            Row("detect", detect),
            Row("provision", provision),
            Row("provision, computed", computed),
        ];
        let mut text = table::text(&COLUMNS, &rows, None) + "\n";
        let mut line = |name: &str, value: String| text.extend([format!("{name:<15}").as_str(), &value, "\n"]);
        if let Some(Compiled { bytes, milliseconds }) = self.compile {
            line("compile", format!("{milliseconds:.0} ms for {}", HumanBytes(bytes as u64)));
        }
        let Measurement { calls, peak_memory, bytes_read, bytes_returned, content_bytes, per_100_kb, .. } =
            self.measurement;
        line("calls", calls.to_string());
        if let Some(median) = per_100_kb {
            line("per 100 kB", format!("{median:.3} ms; the bundle has {}", HumanBytes(content_bytes)));
        }
        line("peak memory", HumanBytes(peak_memory).to_string());
        line("read", HumanBytes(bytes_read).to_string());
        line("returned", HumanBytes(bytes_returned).to_string());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_a_table_and_sizes_are_lines() {
        let times = Times { minimum: 0.5, median: 1.0, p95: 2.25, maximum: 10.0 };
        let measurement = Measurement {
            calls: 100,
            smallest_call: times,
            detect: times,
            provision: times,
            computed: times,
            peak_memory: 3 << 20,
            bytes_read: 2048,
            bytes_returned: 1024,
            content_bytes: 50_000,
            per_100_kb: Some(2.0),
        };
        let compile = Some(Compiled { bytes: 1 << 20, milliseconds: 150.4 });
        let report = BenchReport { component: "sha256:0".into(), compile, measurement };
        insta::assert_snapshot!(report.text(), @"
        MILLISECONDS         MINIMUM  MEDIAN  P95    MAXIMUM
        smallest call        0.500    1.000   2.250  10.000
        detect               0.500    1.000   2.250  10.000
        provision            0.500    1.000   2.250  10.000
        provision, computed  0.500    1.000   2.250  10.000

        compile        150 ms for 1.00 MiB
        calls          100
        per 100 kB     2.000 ms; the bundle has 48.83 KiB
        peak memory    3.00 MiB
        read           2.00 KiB
        returned       1.00 KiB
        ");
    }
}
