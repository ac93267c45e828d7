//! Builds the test components in other languages, from the contract and their sources, with the tools of these
//! languages.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::command;

/// The tools, in tested versions.
const QUICKJS: &str = "componentize-qjs@0.4.5";
const STARLINGMONKEY: &str = "@bytecodealliance/jco@1.35.0";
const PYTHON: &str = "componentize-py==0.25.1";

/// Builds the components into `tests/guests/components`. Needs npm, python3, zstd and the network.
pub(crate) fn build_all() -> anyhow::Result<()> {
    let languages = Languages::new();
    fs::create_dir_all(&languages.directory)?;
    languages.install()?;
    languages.quickjs()?;
    languages.starlingmonkey()?;
    languages.python()?;
    let mut bless = command::cargo(["test", "--quiet", "--workspace", "--test", "it", "languages::"]);
    command::run(bless.env("CHANDLER_BLESS", "1"))
}

struct Languages {
    /// The directory in which tools are installed and components are built.
    directory: PathBuf,
    guests: PathBuf,
    contract: PathBuf,
}

impl Languages {
    fn new() -> Self {
        Self {
            directory: command::target_directory().join("languages"),
            guests: command::root().join("tests/guests"),
            contract: command::root().join("wit/0.1.0"),
        }
    }

    fn at(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.directory);
        command
    }

    fn install(&self) -> anyhow::Result<()> {
        // Without its own package.json, npm would install into a parent directory that has one.
        fs::write(self.directory.join("package.json"), "{\"private\": true}\n")?;
        command::run(self.at("npm").args([
            "install",
            "--no-audit",
            "--no-fund",
            "--no-save",
            QUICKJS,
            STARLINGMONKEY,
        ]))?;
        command::run(self.at("python3").args(["-m", "venv", "python"]))?;
        command::run(self.at(self.directory.join("python/bin/pip")).args(["install", "--quiet", PYTHON]))
    }

    /// `--sync` omits asynchronous components, which the sandbox lacks. WASI stays: an uncaught exception is written to standard error.
    fn quickjs(&self) -> anyhow::Result<()> {
        let mut build = self.at(self.directory.join("node_modules/.bin/componentize-qjs"));
        build.arg("--wit").arg(&self.contract).arg("--js").arg(self.guests.join("javascript/provisioner.js"));
        command::run(build.args(["--sync", "-o", "quickjs.wasm"]))?;
        self.keep("quickjs")
    }

    /// Omits what the sandbox lacks, except for standard error, to which an uncaught exception is written.
    fn starlingmonkey(&self) -> anyhow::Result<()> {
        let mut build = self.at(self.directory.join("node_modules/.bin/jco"));
        let preopens = self.guests.join("javascript/preopens.mjs");
        build.env("NODE_OPTIONS", format!("--import={}", preopens.display()));
        build.arg("componentize").arg(self.guests.join("javascript/provisioner.js")).arg("-w").arg(&self.contract);
        for feature in ["http", "clocks", "random", "fetch-event"] {
            build.args(["-d", feature]);
        }
        command::run(build.args(["-o", "starlingmonkey.wasm"]))?;
        self.keep("starlingmonkey")
    }

    fn python(&self) -> anyhow::Result<()> {
        let mut build = self.at(self.directory.join("python/bin/componentize-py"));
        build.arg("-d").arg(&self.contract).args(["-w", "plugin", "componentize", "--stub-wasi", "-o", "python.wasm"]);
        command::run(build.arg("-p").arg(self.guests.join("python")).arg("app"))?;
        self.keep("python")
    }

    fn keep(&self, name: &str) -> anyhow::Result<()> {
        let kept = self.guests.join(format!("components/{name}.wasm.zst"));
        command::run(self.at("zstd").args(["-q", "-19", "-f"]).arg(format!("{name}.wasm")).arg("-o").arg(kept))
    }
}
