//! Parses every file below the given directories, and prints the speed.
//!
//! `cargo run --release --package chandler-yaml --example speed -- DIRECTORY...`

use std::{env, fs, path::PathBuf, process::ExitCode, time::Instant};

#[expect(clippy::print_stdout, clippy::cast_precision_loss, reason = "a measurement for people")]
fn main() -> ExitCode {
    let mut directories: Vec<PathBuf> = env::args_os().skip(1).map(PathBuf::from).collect();
    let (mut files, mut refused) = (Vec::new(), 0);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml" || extension == "json") {
                files.extend(fs::read(&path).map(|bytes| (path, bytes)));
            }
        }
    }
    let begin = Instant::now();
    for (path, bytes) in &files {
        if let Err(error) = chandler_yaml::parse(bytes, &chandler_yaml::Limits::default()) {
            println!("{}: {error}", path.display());
            refused += 1;
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    let megabytes = files.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() as f64 / 1e6;
    println!(
        "{} files, {refused} refused, {megabytes:.1} MB in {seconds:.2} s: {:.1} MB/s",
        files.len(),
        megabytes / seconds
    );
    ExitCode::SUCCESS
}
