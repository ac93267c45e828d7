//! Writes files into a compressed archive.

use std::{
    io::{self, IsTerminal as _, Write},
    path::Path,
};

use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};
use tempfile::NamedTempFile;

use crate::CommandError;

/// Writes a `.tar.gz` with these files, by path, to standard output.
pub fn print<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<(), CommandError> {
    let mut output = io::stdout().lock();
    if output.is_terminal() {
        return Err(CommandError::usage("an archive is not written to a terminal")
            .hint("name a file with --file, or use a pipe"));
    }
    pack(&mut output, files).map_err(|error| CommandError::output(&error))
}

/// Writes a `.tar.gz` with these files, by path, that only the user may read. The same files make the same bytes. An existing file is not
/// overwritten, and a failure leaves no file.
pub fn write<'a>(path: &Path, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<(), CommandError> {
    let failed = |error: io::Error| {
        let failed = CommandError::failed(format!("failed to write {}", path.display())).because(&error);
        if error.kind() == io::ErrorKind::AlreadyExists { failed.hint("name another file with --file") } else { failed }
    };
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Its mode is 0600.
    let file = NamedTempFile::new_in(directory).map_err(failed)?;
    pack(file.as_file(), files).map_err(failed)?;
    file.persist_noclobber(path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn pack<'a>(output: impl Write, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> io::Result<()> {
    let mut archive = Builder::new(GzBuilder::new().mtime(0).write(output, Compression::default()));
    for (name, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_size(u64::try_from(bytes.len()).map_err(io::Error::other)?);
        header.set_mode(0o644);
        header.set_mtime(0);
        archive.append_data(&mut header, name, bytes)?;
    }
    archive.into_inner()?.finish()?.flush()
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::PermissionsExt as _,
    };

    use super::*;

    #[test]
    fn the_same_files_make_the_same_private_archive_and_nothing_is_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let long = format!("a/{}.json", "x".repeat(200));
        let files = || [("a/b.json", b"{}".as_slice()), (&long, b"1")];
        let (one, two) = (directory.path().join("one.tar.gz"), directory.path().join("two.tar.gz"));
        write(&one, files()).unwrap();
        write(&two, files()).unwrap();
        assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
        assert_eq!(fs::metadata(&one).unwrap().permissions().mode() & 0o777, 0o600);
        let refused = write(&one, files()).unwrap_err().to_string();
        assert!(refused.contains("--file"), "{refused}");
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(File::open(&one).unwrap()));
        let names: Vec<String> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
        assert_eq!(names, ["a/b.json".to_owned(), long]);
    }

    #[test]
    fn a_failure_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("one.tar.gz");
        // An archive cannot hold such a name.
        assert!(write(&path, [("a", b"1".as_slice()), ("../b", b"2")]).is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
