//! The decisions of a reconcile. Pure: no client, no context, no clock; what a decision needs comes in as data.
//!
//! | module | decides |
//! |---|---|
//! | [`intent`] | what a reconcile does, and when the next one is |
//! | [`account`] | on behalf of which ServiceAccount objects are handled |
//! | [`detection`] | which class renders a bundle, where the spec names none |
//! | [`config`] | the configuration of the provisioner |
//! | [`revisions`] | which revision should run, and what the history records |
//! | [`redaction`] | which texts of a status may hold values of Secrets |
//! | [`approval`] | whether a change needs approval |
//! | [`privileges`] | what an update of a provisioner may not add unseen |
//! | [`updates`] | whether an installed release keeps its component while its class has a newer one |
//! | [`owner`] | how the objects of the release are treated |
//! | [`drift`] | which differences are repaired, and how they are reported |
//! | [`gates`] | what a rollout waits for, and when health is reported |
//! | [`bundle`], [`upgrade_warnings`] | what is reported about a bundle and its rollout |
//! | [`status`] | the status |

pub(crate) mod account;
pub(crate) mod approval;
pub(crate) mod bundle;
pub(crate) mod config;
pub(crate) mod detection;
pub(crate) mod drift;
pub(crate) mod gates;
pub(crate) mod intent;
pub(crate) mod owner;
pub(crate) mod privileges;
pub(crate) mod redaction;
pub(crate) mod revisions;
pub(crate) mod spec_error;
pub(crate) mod status;
pub(crate) mod updates;
pub(crate) mod upgrade_warnings;

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// A decision that could reach a client would be no decision.
    #[test]
    fn no_decision_can_reach_a_client() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/bundle_deployment/decide");
        let mut checked = 0;
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                let text = fs::read_to_string(&path).unwrap();
                for effect in ["async ", "Context", "Client", "handles", "steps::", "memory::", "Timestamp::now"] {
                    assert!(!text.contains(effect), "{} names {effect:?}", path.display());
                }
                checked += 1;
            }
        }
        assert!(checked >= 12, "{checked} files");
    }
}
