//! What measures the memory of the process: the seeds of all targets, and inputs that once violated a property.
//!
//! These cases run one after the other, since each would measure what the others allocate.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a case that cannot continue panics, and prints what it was about"
)]

use std::{fs, hint::black_box, panic, path::Path, process::ExitCode};

use chandler_properties::{
    TARGETS, check,
    memory::{bounded, measured},
    seeds::seeds,
};
use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let cases: [(&str, fn()); 5] = [
        ("memory::the_peak_is_measured", the_peak_is_measured),
        ("memory::more_than_the_bound_panics", more_than_the_bound_panics),
        ("seeds::every_target_has_seeds_that_pass", every_target_has_seeds_that_pass),
        ("seeds::those_of_git_are_read_to_the_end", those_of_git_are_read_to_the_end),
        ("regressions::every_regression_is_fixed", every_regression_is_fixed),
    ];
    let trial = |(name, case): (&str, fn())| {
        Trial::test(name, move || {
            case();
            Ok(())
        })
    };
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, cases.map(trial).into()).exit_code()
}

fn the_peak_is_measured() {
    let (sum, taken) = measured(|| {
        let sizes = [16 << 20, 48 << 20, 32 << 20];
        sizes.map(|size| black_box(vec![1_u8; size]).len()).iter().sum::<usize>()
    });
    assert_eq!(sum, 96 << 20);
    // All allocations together are 96 MiB.
    assert!((48 << 20..49 << 20).contains(&taken), "{taken}");
}

fn more_than_the_bound_panics() {
    let run = || bounded(b"x", 1 << 20, 10, || black_box(vec![1_u8; 2 << 20]).len());
    let message = *panic::catch_unwind(run).unwrap_err().downcast::<String>().unwrap();
    assert!(message.contains("for an input of 1;"), "{message}");
}

fn every_target_has_seeds_that_pass() {
    for target in TARGETS {
        let seeds = seeds(target.name, Path::new("/nowhere")).unwrap();
        assert!(!seeds.is_empty(), "{}", target.name);
        for seed in &seeds {
            check(target.name, seed);
        }
    }
}

fn those_of_git_are_read_to_the_end() {
    let directory = tempfile::tempdir().unwrap();
    for target in ["git", "known_hosts"] {
        for seed in seeds(target, directory.path()).unwrap() {
            check(target, &seed);
        }
    }
}

/// Inputs that once violated a property: `tests/fuzz/regressions/<target>/<description>`.
fn every_regression_is_fixed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/regressions");
    let mut count = 0;
    for directory in fs::read_dir(&root).unwrap() {
        let directory = directory.unwrap();
        let target = directory.file_name().into_string().unwrap();
        assert!(TARGETS.iter().any(|known| known.name == target), "regressions of no target: {target}");
        for file in fs::read_dir(directory.path()).unwrap() {
            let path = file.unwrap().path();
            // The last printed input is the failing one.
            println!("{}", path.display());
            check(&target, &fs::read(&path).unwrap());
            count += 1;
        }
    }
    assert!(count > 0, "no regressions in {}", root.display());
}
