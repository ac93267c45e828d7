//! certs.d: the certificates for each registry, in a directory named `HOST` or `HOST:PORT`. containers-certs.d(5).

use std::{
    fs, io,
    io::Read as _,
    path::{Path, PathBuf},
};

/// The largest file, in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// The most files of one registry.
const FILES: usize = 100;

/// The certificates for a registry.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct HostCertificates {
    /// PEM certificates of authorities: the files `*.crt`.
    pub authorities: Option<Vec<u8>>,
    /// The certificate and the key of the client in PEM: the files `NAME.cert` and `NAME.key`.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl std::fmt::Debug for HostCertificates {
    /// Without the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (authorities, client) = (self.authorities.is_some(), self.client.is_some());
        f.debug_struct("HostCertificates").field("authorities", &authorities).field("client", &client).finish()
    }
}

/// The certificates for a registry cannot be used. Messages have names of files only.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", .file.display())]
pub struct CertificateError {
    /// The file or directory.
    pub file: PathBuf,
    /// What is wrong.
    pub problem: String,
}

/// The certificates for a registry, as `host` or `host:port`: of the first of these directories that has a directory for it. They are
/// read each time, since certificates of clients expire. Blocks on the disk.
///
/// # Errors
/// A file cannot be read, a certificate of a client has no key or a key no certificate, or there is more than one.
pub fn certificates(directories: &[PathBuf], registry: &str) -> Result<Option<HostCertificates>, CertificateError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:".contains(&byte);
    if registry.is_empty() || registry.starts_with('.') || !registry.bytes().all(allowed) {
        return Ok(None);
    }
    let written = registry.to_ascii_lowercase();
    // With and without the port of TLS it is the same registry.
    let other = match written.rsplit_once(':') {
        Some((host, "443")) => Some(host.to_owned()),
        Some(_) => None,
        None => Some(format!("{written}:443")),
    };
    let names: Vec<String> = [written].into_iter().chain(other).collect();
    for directory in directories.iter().flat_map(|directory| names.iter().map(move |name| directory.join(name))) {
        match fs::read_dir(&directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(&directory, &error)),
            Ok(entries) => return of_directory(&directory, entries).map(Some),
        }
    }
    Ok(None)
}

fn of_directory(directory: &Path, entries: fs::ReadDir) -> Result<HostCertificates, CertificateError> {
    let mut files = Vec::new();
    for entry in entries {
        files.push(entry.map_err(|error| failed(directory, &error))?.path());
        if files.len() > FILES {
            let problem = format!("it has more than {FILES} files");
            return Err(CertificateError { file: directory.to_owned(), problem });
        }
    }
    files.sort();
    let has = |path: &Path| files.iter().any(|file| file == path);
    let mut found = HostCertificates::default();
    for file in &files {
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("crt") => {
                let authorities = found.authorities.get_or_insert_default();
                authorities.extend_from_slice(&read(file)?);
                authorities.push(b'\n');
            }
            Some("cert") => {
                let key = file.with_extension("key");
                if !has(&key) {
                    return Err(missing(file, &key));
                }
                if found.client.is_some() {
                    let problem = "more than one certificate of a client; keep one".to_owned();
                    return Err(CertificateError { file: directory.to_owned(), problem });
                }
                found.client = Some((read(file)?, read(&key)?));
            }
            Some("key") if !has(&file.with_extension("cert")) => {
                return Err(missing(file, &file.with_extension("cert")));
            }
            _ => {}
        }
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>, CertificateError> {
    let mut bytes = Vec::new();
    let opened = fs::File::open(file).map_err(|error| failed(file, &error))?;
    opened.take(FILE_BYTES.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| failed(file, &error))?;
    if bytes.len() as u64 > FILE_BYTES {
        return Err(CertificateError {
            file: file.to_owned(),
            problem: format!("it is larger than {FILE_BYTES} bytes"),
        });
    }
    Ok(bytes)
}

fn failed(file: &Path, error: &io::Error) -> CertificateError {
    CertificateError { file: file.to_owned(), problem: error.to_string() }
}

fn missing(file: &Path, other: &Path) -> CertificateError {
    let name = other.file_name().unwrap_or_default().to_string_lossy();
    CertificateError { file: file.to_owned(), problem: format!("there is no {name} beside it") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_directory_with_the_registry_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| directory.path().join(name));
        let write = |root: &Path, path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(&second, "a.io/ca.crt", "A");
        write(&second, "b.io:5000/b.crt", "B");
        write(&second, "b.io:5000/a.crt", "A");
        write(&second, "b.io:5000/client.cert", "C");
        write(&second, "b.io:5000/client.key", "K");
        write(&second, "b.io:5000/notes.txt", "N");
        write(&first, "a.io/notes.txt", "N");
        write(&first, "lonely.io/client.cert", "C");
        write(&first, "keyed.io/client.key", "K");
        write(&first, "two.io/a.cert", "C");
        write(&first, "two.io/a.key", "K");
        write(&first, "two.io/b.cert", "C");
        write(&first, "two.io/b.key", "K");
        let of = |registry: &str| certificates(&[first.clone(), second.clone()], registry);
        assert_eq!(of("a.io").unwrap(), Some(HostCertificates::default()), "an empty directory hides a later one");
        let authorities = Some(b"A\nB\n".to_vec());
        let client = Some((b"C".to_vec(), b"K".to_vec()));
        assert_eq!(of("B.io:5000").unwrap(), Some(HostCertificates { authorities, client }));
        write(&second, "tls.io:443/ca.crt", "T");
        for registry in ["tls.io", "TLS.io:443"] {
            assert_eq!(of(registry).unwrap().unwrap().authorities, Some(b"T\n".to_vec()), "{registry}");
        }
        assert_eq!(of("a.io:443").unwrap(), Some(HostCertificates::default()));
        for absent in ["b.io", "c.io", "", "..", ".", "../first/a.io", "a.io/.."] {
            assert_eq!(of(absent).unwrap(), None, "{absent}");
        }
        for (registry, expected) in [
            ("lonely.io", "lonely.io/client.cert: there is no client.key beside it"),
            ("keyed.io", "keyed.io/client.key: there is no client.cert beside it"),
            ("two.io", "two.io: more than one certificate of a client; keep one"),
        ] {
            let error = of(registry).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
    }
}
