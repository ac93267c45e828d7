//! The configurations in which a bundle is rendered.

use std::{fmt, str::FromStr};

use serde_json::{Map, Value};

/// The watched namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watch {
    All,
    Own,
    Single,
}

/// One configuration: the watched namespaces, and the certificate provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode {
    watch: Watch,
    certificates: bool,
}

/// The namespaces of the modes.
#[derive(Clone, Debug)]
pub struct Namespaces {
    /// The install namespace.
    pub install: String,
    /// The watched namespace in the mode `single`.
    pub watched: String,
}

impl Mode {
    /// The modes that are tried without expected results.
    pub const USUAL: [Self; 3] = [
        Self { watch: Watch::All, certificates: true },
        Self { watch: Watch::Own, certificates: true },
        Self { watch: Watch::Single, certificates: true },
    ];

    /// The configuration of a bundle, without features that OLM v1 lacks.
    pub fn config(self, namespaces: &Namespaces) -> Map<String, Value> {
        let provider = if self.certificates { "cert-manager" } else { "none" };
        let mut config = Map::new();
        config.insert("compatibility".to_owned(), "reference".into());
        config.insert("certificateProvider".to_owned(), provider.into());
        match self.watch {
            Watch::All => {}
            Watch::Own => drop(config.insert("watchNamespace".to_owned(), namespaces.install.as_str().into())),
            Watch::Single => drop(config.insert("watchNamespace".to_owned(), namespaces.watched.as_str().into())),
        }
        config
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.watch {
            Watch::All => "all",
            Watch::Own => "own",
            Watch::Single => "single",
        })?;
        f.write_str(if self.certificates { "" } else { "-nocert" })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (watch, certificates) = match text.strip_suffix("-nocert") {
            Some(watch) => (watch, false),
            None => (text, true),
        };
        let watch = match watch {
            "all" => Watch::All,
            "own" => Watch::Own,
            "single" => Watch::Single,
            _ => return Err(format!("{text:?} is not a mode: want all, own or single, each perhaps with -nocert")),
        };
        Ok(Self { watch, certificates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_round_trip() {
        for text in ["all", "own", "single", "all-nocert", "own-nocert", "single-nocert"] {
            assert_eq!(text.parse::<Mode>().map(|mode| mode.to_string()).as_deref(), Ok(text));
        }
        assert!("some".parse::<Mode>().is_err());
        let namespaces = Namespaces { install: "here".into(), watched: "there".into() };
        let config = |text: &str| Value::Object(text.parse::<Mode>().unwrap().config(&namespaces)).to_string();
        assert_eq!(config("all"), r#"{"certificateProvider":"cert-manager","compatibility":"reference"}"#);
        assert_eq!(
            config("single-nocert"),
            r#"{"certificateProvider":"none","compatibility":"reference","watchNamespace":"there"}"#
        );
        assert!(config("own").contains(r#""watchNamespace":"here""#));
    }
}
