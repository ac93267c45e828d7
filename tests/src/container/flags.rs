//! The flags of `chandler controller` for options.

use std::{fmt::Debug, time::Duration};

use chandler_controller::{ClusterOperatorMode, ClusterOperatorSettings, MirrorSets, Options, ServiceOptions};
use chandler_permissions::{AccountPolicy, Unnamed};

use crate::in_process::InProcess;

/// The arguments of the Deployment, with what the options change.
///
/// # Errors
/// An option has no flag, or a flag that reads another form of it.
pub(super) fn arguments(deployed: Vec<String>, options: &Options) -> Result<Vec<String>, InProcess> {
    let defaults = Options::default();
    // Without `..`, so that a new option does not compile before it is decided here.
    let Options {
        watch_selector,
        leader_election,
        foreign_class_prefixes,
        system_namespace,
        // The volume of the Deployment.
        cache_directory: _,
        compiler,
        content,
        // The variable of the Deployment sets it.
        advertised_address: _,
        probe_address,
        metrics,
        receiver,
        tls,
        follow_tls_profile,
        plain_http_registries,
        registries,
        registry_certificates,
        mirrors_from,
        catalogs_from,
        pull_secrets_of,
        content_cache_bytes,
        catalog_index_bytes,
        releases,
        stored_release_bytes,
        concurrency,
        image_poll_interval,
        restore_wait,
        cluster_poll_interval,
        allow_unsigned,
        image_rules,
        accounts,
        require_pull_secret_grant,
        require_service_account_grant,
        decisions_from_config_maps,
        targets,
        certificates,
        platform_resolution,
        platform_account,
        platform_packages,
        cluster_operators,
        ceiling,
    } = options;
    if leader_election.is_some() {
        return Err(InProcess::Lease);
    }
    same("compiler", compiler, &defaults.compiler)?;
    same("tls", tls, &defaults.tls)?;
    same("registries", registries, &defaults.registries)?;
    same("registry_certificates", registry_certificates, &defaults.registry_certificates)?;
    same("catalog_index_bytes", catalog_index_bytes, &defaults.catalog_index_bytes)?;
    same("releases", releases, &defaults.releases)?;
    same("image_rules", image_rules, &defaults.image_rules)?;
    same("certificates", certificates, &defaults.certificates)?;
    same("ceiling", ceiling, &defaults.ceiling)?;

    let mut flags = Flags(deployed);
    flags.set("system-namespace", system_namespace);
    if !watch_selector.selects_all() {
        flags.set("watch-selector", watch_selector);
    }
    flags.each("foreign-class-prefix", foreign_class_prefixes);
    if let Some(content) = content {
        let service = ServiceOptions {
            address: content.address,
            service: content.service.clone(),
            tls_secret: content.tls_secret.clone(),
        };
        flags.service("content", &service);
        flags.optional("content-url", content.url.as_ref());
    }
    flags.optional("probe-address", probe_address.as_ref());
    if let Some(metrics) = metrics {
        flags.service("metrics", metrics);
    }
    if let Some(receiver) = receiver {
        flags.service("receiver", receiver);
    }
    flags.optional("tls-profile-from", follow_tls_profile.then_some("apiservers").as_ref());
    flags.each("plain-http-registry", plain_http_registries);
    flags.list("mirrors-from", mirrors_from.iter().map(|kind| kind_of_mirrors(*kind).to_owned()));
    flags.list("catalogs-from", catalogs_from.iter().map(ToString::to_string));
    flags.optional("pull-secrets-of", pull_secrets_of.as_ref());
    flags.set("content-cache-limit", content_cache_bytes);
    flags.set("release-storage-limit", stored_release_bytes);
    flags.set("concurrency", concurrency);
    flags.set("image-poll-interval", duration(*image_poll_interval));
    flags.set("restore-wait", duration(*restore_wait));
    flags.set("cluster-poll-interval", duration(*cluster_poll_interval));
    flags.switch("allow-unsigned", *allow_unsigned);
    let AccountPolicy { unnamed, namespaces } = accounts;
    flags.switch("require-service-account", *unnamed == Unnamed::Refused);
    for namespace in namespaces {
        flags.0.push(format!("--accounts-in={namespace}"));
    }
    if let Unnamed::Default(own) = unnamed {
        let namespace = own.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        flags.set("default-service-account", format!("{namespace}{}", own.name));
    }
    flags.switch("require-pull-secret-grant", *require_pull_secret_grant);
    flags.switch("require-service-account-grant", *require_service_account_grant);
    flags.switch("decisions-from-config-maps", *decisions_from_config_maps);
    flags.set("target-clusters", targets.most);
    flags.set("target-poll-interval", duration(targets.poll_interval));
    flags.switch("allow-loopback-targets", targets.allow_loopback);
    flags.set("platform-resolution", platform_resolution);
    flags.optional("platform-service-account", platform_account.as_ref());
    flags.list("platform-packages", platform_packages.allowed.iter().cloned());
    flags.switch("require-platform-property", platform_packages.must_be_operators);
    flags.cluster_operators(cluster_operators)?;
    Ok(flags.0)
}

/// The files of `deploy/` with the permissions that a controller with these options needs.
pub(super) fn files(options: &Options) -> Vec<&'static str> {
    let mut files = vec!["rbac.yaml", "metrics.yaml"];
    let mut needs = |file, needs: bool| files.extend(needs.then_some(file));
    needs("content.yaml", options.content.is_some());
    needs("receiver.yaml", options.receiver.is_some());
    needs("rbac-registries.yaml", !options.mirrors_from.is_empty() || options.pull_secrets_of.is_some());
    needs("rbac-olm-catalogs.yaml", !options.catalogs_from.is_empty());
    let on_openshift = options.cluster_operators.mode != ClusterOperatorMode::None || options.follow_tls_profile;
    needs("rbac-openshift.yaml", on_openshift);
    files
}

fn same<T: Debug>(name: &'static str, value: &T, default: &T) -> Result<(), InProcess> {
    // Not all of them can be compared.
    let is_default = format!("{value:?}") == format!("{default:?}");
    if is_default { Ok(()) } else { Err(InProcess::Option(name)) }
}

fn kind_of_mirrors(kind: MirrorSets) -> &'static str {
    match kind {
        MirrorSets::ImageDigest => "imagedigestmirrorsets",
        MirrorSets::ImageTag => "imagetagmirrorsets",
    }
}

fn duration(duration: Duration) -> String {
    format!("{}ms", duration.as_millis())
}

/// Arguments of a command, with `=` between a flag and its value.
struct Flags(Vec<String>);

impl Flags {
    /// Sets a flag, in place of one that is there.
    fn set(&mut self, name: &str, value: impl ToString) {
        let beginning = format!("--{name}=");
        let argument = format!("{beginning}{}", value.to_string());
        match self.0.iter_mut().find(|argument| argument.starts_with(&beginning)) {
            Some(present) => *present = argument,
            None => self.0.push(argument),
        }
    }

    fn optional(&mut self, name: &str, value: Option<&impl ToString>) {
        if let Some(value) = value {
            self.set(name, value.to_string());
        }
    }

    fn switch(&mut self, name: &str, is_set: bool) {
        self.0.extend(is_set.then(|| format!("--{name}")));
    }

    fn each(&mut self, name: &str, values: &[String]) {
        self.0.extend(values.iter().map(|value| format!("--{name}={value}")));
    }

    fn list(&mut self, name: &str, values: impl Iterator<Item = String>) {
        let values: Vec<String> = values.collect();
        if !values.is_empty() {
            self.set(name, values.join(","));
        }
    }

    fn service(&mut self, name: &str, service: &ServiceOptions) {
        let ServiceOptions { address, service, tls_secret } = service;
        self.set(&format!("{name}-address"), address);
        self.set(&format!("{name}-service"), service);
        self.optional(&format!("{name}-tls-secret"), tls_secret.as_ref());
    }

    fn cluster_operators(&mut self, settings: &ClusterOperatorSettings) -> Result<(), InProcess> {
        let ClusterOperatorSettings { mode, names, version, expected, thresholds, deprecated_blocks_upgrades } =
            settings;
        same("cluster_operators.thresholds", thresholds, &ClusterOperatorSettings::default().thresholds)?;
        let mode = match mode {
            ClusterOperatorMode::Aggregated => "aggregated",
            ClusterOperatorMode::Each => "each",
            ClusterOperatorMode::None => "none",
        };
        self.set("cluster-operators", mode);
        let name = names.core();
        let suffix = name.strip_prefix("platform-operators-core").unwrap_or_default();
        if !suffix.is_empty() {
            self.set("cluster-operator-suffix", suffix);
        }
        self.set("release-version", version);
        self.list("expected-platform-operators", expected.iter().cloned());
        self.switch("deprecated-blocks-upgrades", *deprecated_blocks_upgrades);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployed() -> Vec<String> {
        ["controller", "--metrics-address=0.0.0.0:9443"].map(str::to_owned).to_vec()
    }

    #[test]
    fn the_flags_of_the_deployment_stay_unless_an_option_changes_them() {
        let accounts = AccountPolicy::new(false, "system/installer".parse().ok());
        let options = Options { accounts, ..Options::default() };
        let found = arguments(deployed(), &options).expect("flags");
        assert_eq!(found[..2], deployed());
        assert!(found.contains(&"--default-service-account=system/installer".to_owned()), "{found:?}");
        let metrics =
            ServiceOptions { address: ([127, 0, 0, 1], 1).into(), service: "metrics".to_owned(), tls_secret: None };
        let options = Options {
            metrics: Some(metrics),
            accounts: AccountPolicy::REQUIRED.within(["accounts".to_owned()]).expect("a policy"),
            cluster_poll_interval: Duration::from_millis(200),
            ..Options::default()
        };
        let found = arguments(deployed(), &options).expect("flags");
        assert_eq!(found.iter().filter(|flag| flag.starts_with("--metrics-address")).count(), 1);
        for flag in [
            "--metrics-address=127.0.0.1:1",
            "--metrics-service=metrics",
            "--require-service-account",
            "--accounts-in=accounts",
            "--cluster-poll-interval=200ms",
        ] {
            assert!(found.iter().any(|found| found == flag), "{flag}: {found:?}");
        }
        assert!(!found.iter().any(|flag| flag.starts_with("--default-service-account")), "{found:?}");
    }

    #[test]
    fn an_option_without_a_flag_says_so() {
        let options = Options { catalog_index_bytes: 1, ..Options::default() };
        let found = arguments(deployed(), &options);
        assert_eq!(found, Err(InProcess::Option("catalog_index_bytes")));
    }

    #[test]
    fn an_optional_file_follows_from_an_option() {
        let mut options = Options::default();
        options.cluster_operators.mode = ClusterOperatorMode::None;
        assert_eq!(files(&options), ["rbac.yaml", "metrics.yaml"]);
        options.pull_secrets_of = Some("chandler".to_owned());
        assert_eq!(files(&options), ["rbac.yaml", "metrics.yaml", "rbac-registries.yaml"]);
    }
}
