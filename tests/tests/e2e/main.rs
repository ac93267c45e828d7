//! End-to-end tests: one file for each promise to users.

// The futures of whole scenarios are nested deeply.
#![recursion_limit = "256"]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed precondition of a test panics"
)]

mod admission;
mod admission_policies;
mod adoption;
mod alerts;
mod api_faults;
mod api_faults_in_sets;
mod approval;
mod approval_blockers;
mod backups;
mod backups_of_sets;
mod catalogs;
mod causes;
mod certificates;
mod class_updates;
mod cluster_changes;
mod cluster_operators;
mod config_map_source;
mod content_service;
mod controller_rights;
mod crash_recovery;
mod crd_race;
mod crd_upgrade;
mod decision_map_crashes;
mod decision_maps;
mod deeply_nested;
mod deletion_policy;
mod detection;
mod disasters;
mod drift;
mod drift_atomic;
mod drift_random_edits;
mod events;
mod failed_update;
mod failing_kinds;
mod failing_status;
mod finalizer;
mod foreign_classes;
mod forged_managed_fields;
mod former_leaders;
mod generated_secrets;
mod git_source;
mod gitops;
mod handovers;
mod health;
mod helm_charts;
mod helm_repository;
mod helm_upgrades;
mod histories;
mod hostile_provisioners;
mod http_source;
mod idempotence;
mod idle_cost;
mod immutable;
mod impostors;
mod install;
mod install_cost;
mod installations;
mod kept_conversion;
mod large;
mod leader_election;
mod left_out;
mod malformed;
mod monitoring;
mod odd_manifests;
mod olm_catalogs;
mod openshift_suite;
mod orphan_race;
mod other_clusters;
mod ownership;
mod pending_uploads;
mod permissions;
mod placement;
mod plain_bundles;
mod platform_operators;
mod platform_policies;
mod previous_release;
mod provisioner_classes;
mod random;
mod receivers;
mod recovery;
mod registries;
mod removals;
mod repair_isolation;
mod request_counts;
mod resolution_crashes;
mod resolutions;
mod resource_policy;
mod revisions;
mod seeded_faults;
mod shared_cache;
mod shop;
mod signed_images;
mod signed_provisioners;
mod stages;
mod starvation;
mod tenancy;
mod tenants;
mod test_isolation;
mod tls_profile;
mod traces;
mod uninstall;
mod untrusted_metadata;
mod upgrade;
mod values;
mod watch_selector;

/// The class of registry+v1 bundles.
const REGISTRY: &str = "core-rukpak-io-registry";
/// The class of plain+v0 bundles.
const PLAIN: &str = "core-rukpak-io-plain";
