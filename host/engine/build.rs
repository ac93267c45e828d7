//! Lists the compiled components of `CHANDLER_PRECOMPILED`, a directory that `cargo xtask dist` fills, for src/code/embedded.rs.

use std::{
    env,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// The end of the names of the files, which begin with the SHA-256 of the component.
const SUFFIX: &str = ".cwasm.gz";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CHANDLER_PRECOMPILED");
    let directory = env::var_os("CHANDLER_PRECOMPILED").filter(|directory| !directory.is_empty());
    let entries = directory.map_or_else(|| Ok(Vec::new()), |directory| entries(Path::new(&directory)))?;
    let mut source =
        String::from("/// The code that this program contains.\npub(crate) static EMBEDDED: &[Embedded] = &[\n");
    for (component, path) in entries {
        // Writing to a String cannot fail.
        let _ = writeln!(source, "    Embedded {{ component: {component:?}, compressed: include_bytes!({path:?}) }},");
    }
    source.push_str("];\n");
    let output = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(output.join("embedded.rs"), source)
}

/// The digests of the components and the files of their code, in a stable order.
fn entries(directory: &Path) -> io::Result<Vec<(String, String)>> {
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut entries = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(component) = name.strip_suffix(SUFFIX) {
            entries.push((component.to_owned(), path.to_string_lossy().into_owned()));
        }
    }
    entries.sort();
    Ok(entries)
}
