//! The files of the image: the binary, certificates, and what the C library reads.

use webpki_root_certs::TLS_SERVER_ROOT_CERTS;

/// The user and the group of the container, which `deploy/controller.yaml` names too.
pub(super) const USER: u64 = 65_532;
/// Where the binary is.
pub(super) const ENTRYPOINT: &str = "/usr/local/bin/chandler";

/// A file or a directory of the image.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    /// Without `/` at its beginning; the path of a directory ends with one.
    pub(super) path: String,
    pub(super) mode: u32,
    /// The owner and the group.
    pub(super) owner: u64,
    pub(super) content: Vec<u8>,
}

impl Entry {
    /// A directory of root.
    pub(super) fn directory(path: &str) -> Self {
        Self { path: format!("{path}/"), mode: 0o755, owner: 0, content: Vec::new() }
    }

    /// A file of root that everybody can read.
    pub(super) fn file(path: &str, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.to_owned(), mode: 0o644, owner: 0, content: content.into() }
    }

    fn with_mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    pub(super) fn is_directory(&self) -> bool {
        self.path.ends_with('/')
    }
}

/// What changes rarely: a registry and a node keep its layer from one version to the next.
pub(super) fn system() -> Vec<Entry> {
    vec![
        Entry::directory("etc"),
        Entry::file("etc/group", format!("root:x:0:\nchandler:x:{USER}:\n")),
        // Without this file glibc asks DNS before /etc/hosts, in which the kubelet writes the host aliases of a Pod.
        Entry::file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
        Entry::file("etc/passwd", format!("root:x:0:0::/:/\nchandler:x:{USER}:{USER}::/:/\n")),
        Entry::directory("etc/ssl"),
        Entry::directory("etc/ssl/certs"),
        Entry::file("etc/ssl/certs/ca-certificates.crt", certificates()),
        Entry::directory("tmp").with_mode(0o1777),
        Entry::directory("var"),
        Entry::directory("var/cache"),
        Entry { owner: USER, ..Entry::directory("var/cache/chandler").with_mode(0o750) },
    ]
}

/// What is new in each version.
pub(super) fn program(binary: Vec<u8>) -> Vec<Entry> {
    vec![
        Entry::directory("usr"),
        Entry::directory("usr/local"),
        Entry::directory("usr/local/bin"),
        Entry::file(ENTRYPOINT.trim_start_matches('/'), binary).with_mode(0o755),
    ]
}

/// The certificates that servers are checked with, where OpenSSL has them on Debian. Readers skip the text before the first one.
fn certificates() -> String {
    let mut text = "\
# The root certificates for TLS servers of Mozilla's CA certificate program, from the crate webpki-root-certs.
# SPDX-License-Identifier: CDLA-Permissive-2.0 (https://cdla.dev/permissive-2-0/)
"
    .to_owned();
    for certificate in TLS_SERVER_ROOT_CERTS {
        let line_ending = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
        text.push_str(&pem::encode_config(&pem::Pem::new("CERTIFICATE", certificate.as_ref()), line_ending));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificates_are_read_as_written() {
        let read = pem::parse_many(certificates()).unwrap();
        assert_eq!(read.len(), TLS_SERVER_ROOT_CERTS.len());
        // Mozilla trusts about 120; a crate without its data has fewer.
        assert!(read.len() > 80, "{}", read.len());
        for (read, original) in read.iter().zip(TLS_SERVER_ROOT_CERTS) {
            assert_eq!((read.tag(), read.contents()), ("CERTIFICATE", original.as_ref()));
        }
    }

    #[test]
    fn every_directory_comes_before_what_is_in_it_and_the_entries_are_sorted() {
        for entries in [system(), program(Vec::new())] {
            let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
            assert!(paths.is_sorted(), "{paths:?}");
            for path in &paths {
                let parent = path.trim_end_matches('/').rfind('/').and_then(|end| path.get(..=end));
                assert!(parent.is_none_or(|parent| paths.contains(&parent)), "{path}");
            }
        }
    }
}
