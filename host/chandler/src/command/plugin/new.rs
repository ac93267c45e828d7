//! `chandler plugin new`.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::templates::{self, Language};
use crate::{
    CommandError,
    view::{
        invocation::quoted,
        output,
        terminal::Terminal,
        text::{count, one_line},
    },
    write::files,
};

/// Start a provisioner: source, tests, cases and a Makefile
///
/// The example installs the objects in a directory of the bundle, with labels of the configuration; it has a configuration schema, findings
/// with positions, unit tests (Rust), and cases for `chandler plugin test`. `make` builds and tests it.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The directory, on standard output. Nothing is overwritten.

Exit codes: 0 written, 1 failed, 2 wrong usage

Examples:
  chandler plugin new sail
  cd sail && make
  With a checkout of the SDK instead of its repository:
    chandler plugin new sail --sdk ~/src/chandler
  In JavaScript, which needs npm:
    chandler plugin new sail --language javascript")]
pub struct New {
    /// Name of the provisioner and of its format: lowercase letters, digits and dashes
    #[arg(value_name = "NAME", value_parser = name)]
    pub name: String,

    /// Language of the source
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value_t = SourceLanguage::Rust)]
    pub language: SourceLanguage,

    /// Directory for the files. It must not exist, or be empty [default: NAME]
    #[arg(long, value_name = "DIRECTORY")]
    pub to: Option<PathBuf>,

    /// Checkout of Chandler with the SDK, for Rust [default: its repository]
    #[arg(long, value_name = "PATH")]
    pub sdk: Option<PathBuf>,
}

/// The language of a provisioner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SourceLanguage {
    /// Rust, with the SDK
    Rust,
    /// JavaScript, with componentize-qjs of npm
    Javascript,
    /// Python, with componentize-py of PyPI
    Python,
}

impl New {
    /// Writes the files.
    pub fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let language = match (self.language, &self.sdk) {
            (SourceLanguage::Rust, None) => Language::Rust { sdk: None },
            (SourceLanguage::Rust, Some(checkout)) => Language::Rust { sdk: Some(sdk(checkout)?) },
            (SourceLanguage::Javascript | SourceLanguage::Python, Some(_)) => {
                return Err(CommandError::usage("--sdk has no effect: the SDK is for Rust")
                    .hint("provisioners in other languages are built from the contract, which is written into wit/"));
            }
            (SourceLanguage::Javascript, None) => Language::JavaScript,
            (SourceLanguage::Python, None) => Language::Python,
        };
        let directory = self.to.clone().unwrap_or_else(|| PathBuf::from(&self.name));
        let all = templates::files(&self.name, &language);
        files::write_all(&all, &directory)?;
        let shown = one_line(&directory.display().to_string());
        terminal.line(format!(
            "wrote {} into {shown}; next: `cd {} && make`",
            count(all.len(), "file"),
            quoted(&shown)
        ));
        output::print(&format!("{shown}\n"))
    }
}

/// The directory of the SDK's crate in a checkout, or this directory if it is the crate.
fn sdk(checkout: &Path) -> Result<PathBuf, CommandError> {
    let candidates = [checkout.join("sdk/guest"), checkout.to_owned()];
    let found = candidates
        .into_iter()
        .find(|path| path.join("Cargo.toml").is_file() && path.join("src/provisioner.rs").is_file());
    let shown = one_line(&checkout.display().to_string());
    let found = found.ok_or_else(|| {
        CommandError::usage(format!("{shown} has no SDK"))
            .hint("name a checkout of the repository: it has the SDK in sdk/guest")
    })?;
    found.canonicalize().map_err(|error| CommandError::failed(format!("failed to open {shown}")).because(&error))
}

/// Names that cargo refuses for a crate, or that hide a crate of Rust.
const RESERVED: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "self",
    "serde",
    "serde-json",
    "chandler-sdk",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

fn name(text: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_label = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(allowed)
        && !text.ends_with('-')
        && !text.contains("--")
        && text.len() <= 40;
    if !is_label {
        return Err("write at most 40 lowercase letters, digits and dashes, beginning with a letter".to_owned());
    }
    if RESERVED.contains(&text) {
        return Err(format!("{text} is reserved in Rust: choose another name"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_label_and_a_crate() {
        for text in ["sail", "sail-2", "a", &"x".repeat(40)] {
            assert_eq!(name(text).as_deref(), Ok(text));
        }
        for text in [
            "",
            "Sail",
            "2sail",
            "sail-",
            "-sail",
            "sail--2",
            "../sail",
            "sail/x",
            "sail_x",
            "säil",
            "fn",
            "std",
            &"x".repeat(41),
        ] {
            assert!(name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_sdk_is_a_crate_or_in_a_checkout() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let expected = root.join("sdk/guest").canonicalize().unwrap();
        assert_eq!(sdk(&root).unwrap(), expected);
        assert_eq!(sdk(&expected).unwrap(), expected);
        assert!(sdk(&root.join("sdk")).unwrap_err().to_string().contains("sdk/guest"));
    }
}
