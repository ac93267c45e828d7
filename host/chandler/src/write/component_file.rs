//! Component files.

use std::{
    io::{self, Write as _},
    path::Path,
};

use crate::{CommandError, view::text::one_line};

/// Writes a component. Readers of the file see the old component or the new one, such as `chandler dev --provisioner`.
pub fn write(path: &Path, wasm: &[u8]) -> Result<(), CommandError> {
    replace(path, wasm).map_err(|error| {
        CommandError::failed(format!("failed to write {}", one_line(&path.display().to_string()))).because(&error)
    })
}

fn replace(path: &Path, wasm: &[u8]) -> io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().permissions(permissions()).tempfile_in(directory)?;
    file.write_all(wasm)?;
    file.persist(path)?;
    Ok(())
}

/// As the umask allows, like files of compilers; temporary files are private by default.
fn permissions() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::Permissions::from_mode(0o666)
}
