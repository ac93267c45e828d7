//! Prints how a component of an OpenShift release payload becomes a package. Asks no cluster.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chandler_yaml::{Limits, from_node, parse};
use serde_json::Value;

use super::Migrate;
use crate::{
    CommandError,
    arguments::values,
    migrate::cvo::{self, PayloadFile},
    read::file,
    view::{output, terminal::Terminal, text::one_line},
};

/// The most bytes of a file.
const FILE: u64 = 4 << 20;
/// The most files.
const FILES: usize = 1_000;

/// Prints the PlatformOperator, and what is to be done.
pub(super) fn run(arguments: &Migrate, terminal: &Terminal) -> Result<(), CommandError> {
    let (directory, name) = match arguments.objects.as_slice() {
        [directory] => (PathBuf::from(directory), None),
        [directory, name] => (PathBuf::from(directory), Some(name.clone())),
        _ => {
            return Err(CommandError::usage("a component has a directory of manifests and a name")
                .hint("`chandler migrate cvo DIR [NAME]`"));
        }
    };
    let name = match name {
        Some(name) => name,
        None => component(&directory)?,
    };
    values::dns_label(&name).map_err(|error| {
        CommandError::usage(format!("{name:?} cannot be the name of a package: {error}"))
            .hint("name the package: `chandler migrate cvo DIR NAME`")
    })?;
    let plan = cvo::plan(&name, &read(&directory)?).map_err(|error| {
        CommandError::failed(format!("{} cannot become a package", directory.display())).because(&error)
    })?;
    output::print(&output::write(std::slice::from_ref(&plan.operator), arguments.output)?)?;
    for (file, reason) in &plan.stays {
        terminal.line(format!("stays in the payload: {}: {}", one_line(file), one_line(reason)));
    }
    for note in &plan.notes {
        terminal.line(format!("note: {}", one_line(note)));
    }
    for (number, step) in plan.steps(&name).iter().enumerate() {
        terminal.line(format!("{}. {}", number + 1, one_line(step)));
    }
    Ok(())
}

/// The name of the directory, or of the one above `manifests`.
fn component(directory: &Path) -> Result<String, CommandError> {
    let failed = |error| CommandError::usage(format!("failed to read {}", directory.display())).because(&error);
    let directory = directory.canonicalize().map_err(failed)?;
    let own = if directory.ends_with("manifests") { directory.parent() } else { Some(directory.as_path()) };
    let name = own.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    Ok(name.to_owned())
}

fn read(directory: &Path) -> Result<Vec<PayloadFile>, CommandError> {
    let failed = |error: &std::io::Error| {
        CommandError::usage(format!("failed to read the manifests in {}", directory.display())).because(error)
    };
    let entries =
        fs::read_dir(directory).and_then(Iterator::collect::<Result<Vec<_>, _>>).map_err(|error| failed(&error))?;
    let is_manifest = |path: &PathBuf| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
    };
    let mut paths: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).filter(is_manifest).collect();
    if paths.len() > FILES {
        return Err(CommandError::usage(format!("{} has more than {FILES} manifests", directory.display())));
    }
    paths.sort();
    paths.iter().map(|path| manifests(path)).collect()
}

fn manifests(path: &Path) -> Result<PayloadFile, CommandError> {
    let failed = || CommandError::usage(format!("failed to read {}", path.display()));
    let bytes = file::read(path, FILE).map_err(|error| failed().because(&error))?;
    let limits = Limits { bytes: bytes.len(), ..Limits::default() };
    let documents = parse(&bytes, &limits).map_err(|error| {
        CommandError::usage(format!("{}:{}:{}: {}", path.display(), error.line, error.column, error.message))
    })?;
    let objects: Result<Vec<Value>, _> = documents.iter().map(|document| from_node(&document.root)).collect();
    let mut objects = objects.map_err(|error| failed().because(&error))?;
    objects.retain(|object: &Value| !object.is_null());
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(PayloadFile { name, objects })
}
