//! The CRDs that `chandler dev --with` installs: sets by name, or files.

use std::path::PathBuf;

/// A set of kinds that bundles expect and that other software provides in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindSet {
    /// The kinds of the Prometheus operator.
    Monitoring,
    /// The kinds of cert-manager.
    CertManager,
}

impl KindSet {
    /// All sets.
    pub const ALL: [Self; 2] = [Self::Monitoring, Self::CertManager];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Monitoring => "monitoring",
            Self::CertManager => "cert-manager",
        }
    }
}

/// One value of `--with`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KindSource {
    /// A set of this program.
    Set(KindSet),
    /// A file with CRDs.
    File(PathBuf),
}

/// Parses a value of `--with`.
pub fn parse(text: &str) -> Result<KindSource, String> {
    if let Some(set) = KindSet::ALL.into_iter().find(|set| set.name() == text) {
        return Ok(KindSource::Set(set));
    }
    let is_file = text.contains('/') || [".yaml", ".yml", ".json"].iter().any(|suffix| text.ends_with(suffix));
    if is_file {
        return Ok(KindSource::File(PathBuf::from(text)));
    }
    let names = KindSet::ALL.map(KindSet::name).join(", ");
    Err(format!("{text:?} is neither one of {names} nor a file with CRDs, such as crds.yaml"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_set_or_a_file() {
        assert_eq!(parse("monitoring"), Ok(KindSource::Set(KindSet::Monitoring)));
        assert_eq!(parse("cert-manager"), Ok(KindSource::Set(KindSet::CertManager)));
        assert_eq!(parse("crds.yaml"), Ok(KindSource::File("crds.yaml".into())));
        assert_eq!(parse("./crds"), Ok(KindSource::File("./crds".into())));
        assert!(parse("certmanager").unwrap_err().contains("monitoring, cert-manager"));
    }
}
