//! Writes the seeds of all targets: `fuzz-seeds CORPUS FIXTURES`. `cargo xtask fuzz` runs it first.

use std::{env, ffi::OsString, fs, io, path::PathBuf};

use chandler_core::Digest;
use chandler_properties::{TARGETS, seeds::seeds};

fn main() -> io::Result<()> {
    let [corpus, fixtures]: [OsString; 2] = env::args_os()
        .skip(1)
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| io::Error::other("usage: fuzz-seeds CORPUS FIXTURES"))?;
    let (corpus, fixtures) = (PathBuf::from(corpus), PathBuf::from(fixtures));
    for target in TARGETS {
        let directory = corpus.join(target.name);
        fs::create_dir_all(&directory)?;
        for seed in seeds(target.name, &fixtures)? {
            fs::write(directory.join(Digest::of(&seed).hex()), seed)?;
        }
    }
    Ok(())
}
