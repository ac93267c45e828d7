//! Messages for author and administrator. They never become part of the release.
//!
//! In the sandbox they go to the host, which limits their volume; natively they go to standard error.

/// The severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For the author of the provisioner.
    Debug,
    /// Normal progress.
    Info,
    /// Something unusual.
    Warn,
    /// An error.
    Error,
}

/// Logs a message with named fields.
pub fn log(level: Level, message: &str, fields: &[(&str, &str)]) {
    #[cfg(target_arch = "wasm32")]
    crate::guest::log(level, message, fields);
    #[cfg(not(target_arch = "wasm32"))]
    {
        let fields = fields.iter().fold(String::new(), |fields, (name, value)| format!("{fields} {name}={value:?}"));
        eprintln!("{level:?}: {message}{fields}");
    }
}

/// Logs for the author of the provisioner.
pub fn debug(message: &str) {
    log(Level::Debug, message, &[]);
}

/// Logs normal progress.
pub fn info(message: &str) {
    log(Level::Info, message, &[]);
}

/// Logs something unusual.
pub fn warn(message: &str) {
    log(Level::Warn, message, &[]);
}

/// Logs an error.
pub fn error(message: &str) {
    log(Level::Error, message, &[]);
}
