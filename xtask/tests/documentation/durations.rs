//! Durations that pages name are the ones of the constants: who changes a constant learns which sentences to change.

use crate::files;

/// A constant, its value in the source, and the sentences that name it: page and text.
type Named = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str)]);

const NAMED: &[Named] = &[
    (
        "host/decisions/src/intent.rs",
        "GRANT_CHECK",
        "from_secs(8)",
        &[("docs/permissions.md", "within ten seconds"), ("docs/permissions.md", "eight seconds")],
    ),
    (
        "host/decisions/src/intent.rs",
        "CRDS_CHECK",
        "from_mins(5)",
        &[("docs/deletion.md", "checks this every five minutes")],
    ),
    ("host/decisions/src/intent.rs", "HELD_CHECK", "from_secs(15)", &[("docs/deletion.md", "every 15 seconds")]),
    ("host/decisions/src/contention.rs", "WINDOW", "from_mins(2)", &[("docs/drift.md", "times within 2 minutes")]),
    ("host/decisions/src/contention.rs", "FIRST_COOLDOWN", "from_secs(10)", &[("docs/drift.md", "a cooldown of 10 s")]),
    ("host/decisions/src/contention.rs", "LONGEST_COOLDOWN", "from_mins(10)", &[("docs/drift.md", "up to 10 minutes")]),
    (
        "host/decisions/src/status/candidate.rs",
        "GRACE",
        "from_secs(10)",
        &[
            ("docs/operations.md", "has been missing for ten seconds"),
            ("docs/gitops.md", "stalled only after ten seconds"),
        ],
    ),
    (
        "host/runtime/src/events/series.rs",
        "SERIES_ENDS",
        "from_mins(6)",
        &[("docs/operations.md", "recurs within six minutes")],
    ),
    ("host/runtime/src/jobs.rs", "WAIT", "from_millis(500)", &[("docs/operations.md", "longer than half a second")]),
    (
        "host/runtime/src/slots.rs",
        "SLOT_TIMEOUT",
        "from_secs(5)",
        &[("docs/operations.md", "takes longer than five seconds"), ("docs/security.md", "slot after five seconds")],
    ),
    (
        "host/rollout/src/client/recent_answers.rs",
        "LIFETIME",
        "from_secs(5)",
        &[("docs/permissions.md", "reviews for five seconds"), ("docs/security.md", "shared for five seconds")],
    ),
    (
        "host/rollout/src/rollout/causes.rs",
        "PATIENCE",
        "from_secs(5)",
        &[("docs/health.md", "waits for more than five seconds"), ("docs/health.md", "less than five seconds")],
    ),
    ("host/rollout/src/pure/causes.rs", "LONGEST", "from_mins(1)", &[("docs/health.md", "up to a minute")]),
    (
        "host/controller/src/provisioner_class/reconciler.rs",
        "LOADING",
        "from_secs(2)",
        &[("docs/operations.md", "False after two seconds")],
    ),
    (
        "host/controller/src/resolution/preflight.rs",
        "CHECK_AGAIN",
        "from_secs(30)",
        &[("docs/resolutions.md", "checks again after 30 seconds")],
    ),
    (
        "host/controller/src/resolution/preflight.rs",
        "LONGEST_WAIT",
        "from_mins(8)",
        &[("docs/resolutions.md", "later every eight")],
    ),
    (
        "host/controller/src/resolution/handovers.rs",
        "PATIENCE",
        "from_mins(5)",
        &[("docs/resolutions.md", "within five minutes")],
    ),
    ("host/releases/src/releases.rs", "UNUSED", "from_hours(24)", &[("docs/operations.md", "not used for a day")]),
    (
        "host/chandler/src/read/credentials/helper.rs",
        "TIMEOUT",
        "from_mins(1)",
        &[("docs/sources.md", "may run for one minute")],
    ),
    (
        "host/chandler/src/read/names.rs",
        "PATIENCE",
        "from_secs(1)",
        &[("docs/commands.md", "within a second, completion offers no names")],
    ),
    ("host/serve/src/uploads.rs", "TIMEOUT", "from_mins(10)", &[("docs/content-service.md", "took ten minutes")]),
    (
        "host/serve/src/body.rs",
        "PATIENCE",
        "from_secs(30)",
        &[("docs/content-service.md", "nothing was sent for 30 seconds")],
    ),
];

/// A page as one line, so that a phrase may be broken.
fn flat(page: &str) -> String {
    files::read(page).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn pages_name_the_durations_of_the_constants() {
    let mut wrong = Vec::new();
    for (file, name, value, sentences) in NAMED {
        let source = files::read(file);
        if !source.contains(&format!("const {name}: Duration = Duration::{value};")) {
            let pages: Vec<&str> = sentences.iter().map(|(page, _)| *page).collect();
            wrong
                .push(format!("{file}: {name} is not Duration::{value} any more; also change {pages:?} and this list"));
        }
        for (page, text) in *sentences {
            if !flat(page).contains(text) {
                wrong.push(format!("{page} no longer says {text:?}, about {name} in {file}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
