//! Writes files into a compressed archive.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use flate2::{Compression, GzBuilder};
use tar::{Builder, Header};

use crate::CommandError;

/// Writes a `.tar.gz` with these files, by path, that only the user may read. The same files make the same bytes. An existing file is not
/// overwritten.
pub fn write<'a>(path: &Path, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Result<(), CommandError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(|error| {
        let failed = CommandError::failed(format!("failed to create {}", path.display())).because(&error);
        if error.kind() == io::ErrorKind::AlreadyExists { failed.hint("name another file with --file") } else { failed }
    })?;
    pack(file, files)
        .map_err(|error| CommandError::failed(format!("failed to write {}", path.display())).because(&error))
}

fn pack<'a>(file: File, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> io::Result<()> {
    let mut archive = Builder::new(GzBuilder::new().mtime(0).write(file, Compression::default()));
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
    use std::{fs, os::unix::fs::PermissionsExt as _};

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
}
