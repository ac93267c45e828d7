//! `cargo xtask generate`: files that are generated from the code and committed, so that readers and reviewers see
//! them.

use std::fs;

use anyhow::{Context as _, bail};

use crate::{command, guests};

/// Write or check the generated files.
#[derive(clap::Args)]
pub(crate) struct Generate {
    /// Change nothing; fail if a file is out of date
    #[arg(long)]
    check: bool,
}

/// A generated file and the arguments of `chandler` that print it.
const FILES: &[(&str, &[&str])] = &[("deploy/crds.yaml", &["crds"]), ("docs/cli.md", &["reference"])];

impl Generate {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        guests::build_all()?;
        for (file, arguments) in FILES {
            let mut text = command::output(command::program("chandler")?.args(*arguments))?;
            text.push('\n');
            let path = command::root().join(file);
            if fs::read_to_string(&path).is_ok_and(|old| old == text) {
                continue;
            }
            if self.check {
                bail!("{file} is out of date: run `cargo xtask generate` and commit the result");
            }
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            fs::write(&path, text).with_context(|| format!("failed to write {file}"))?;
            eprintln!("wrote {file}");
        }
        Ok(())
    }
}
