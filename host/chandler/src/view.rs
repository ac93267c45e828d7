//! Text and JSON for people and tools. No module here has a client; a test checks it.

pub mod adoption;
pub mod advice;
pub mod api_error;
pub mod catalogs;
pub mod class_diff;
pub mod class_listing;
pub mod cluster_catalogs;
pub mod conditions;
pub mod controller_absence;
pub mod decisions;
pub mod deletion;
pub mod diagnostics;
pub mod difference;
pub mod doctor;
pub mod error;
pub mod events;
pub mod excerpt;
pub mod explanation;
pub mod failure;
pub mod findings;
pub mod followed;
pub mod inapplicable;
pub mod invocation;
#[cfg(feature = "dev")]
pub mod line_difference;
pub mod lines;
pub mod listing;
pub mod log;
pub mod manifest;
pub mod must_gather;
pub mod newest;
pub mod olm_states;
pub mod other_tools;
pub mod outdated;
pub mod output;
pub mod overview;
pub mod path;
pub mod pending_change;
pub mod permissions;
pub mod picture;
#[cfg(feature = "dev")]
pub mod plugin_bench;
#[cfg(feature = "dev")]
pub mod plugin_conformance;
#[cfg(feature = "dev")]
pub mod plugin_run;
#[cfg(feature = "dev")]
pub mod plugin_test;
mod position;
pub mod preflight;
pub mod progress;
pub mod progress_reporter;
pub mod recreated;
pub mod relocation;
pub mod reported;
pub mod resolution;
pub mod resolution_progress;
pub mod resolution_status;
pub mod revisions;
pub mod sarif;
pub mod scrubbed;
pub mod secrets;
#[cfg(test)]
mod situations;
pub mod spinner;
pub mod storage_migration;
pub mod subject;
pub mod summary;
pub mod table;
pub mod terminal;
pub mod test_report;
pub mod text;
pub mod tree;
pub mod uninstallation;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// What a module with a client needs.
    const CLIENTS: [&str; 5] = ["kube::{", "Client", "crate::read", "crate::write", "crate::command"];

    #[test]
    fn no_view_can_reach_the_cluster() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let found = |folder: &str| -> Vec<String> {
            let files = fs::read_dir(directory.join(folder)).unwrap().map(|file| file.unwrap().path());
            // The tests of a module are in a folder.
            let files = files.filter(|file| file.is_file());
            let names = files.flat_map(|file| {
                // The name of a reason.
                let text = fs::read_to_string(&file).unwrap().replace("ErrorGettingClient", "");
                let used = CLIENTS.into_iter().filter(move |name| text.contains(name));
                used.map(|name| format!("{}: {name}", file.display())).collect::<Vec<_>>()
            });
            names.collect()
        };
        assert_eq!(found("view"), [""; 0]);
        assert_ne!(found("read"), [""; 0], "the check finds clients where there are some");
    }
}
