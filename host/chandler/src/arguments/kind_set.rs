//! The CRDs that `chandler dev --with` installs: sets by name, or files.

use std::path::PathBuf;

use crate::{read::expected_kinds::KindSet, write::dev_kinds::KindSource};

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
