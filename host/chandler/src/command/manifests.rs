//! `chandler manifests`.

use std::{fmt::Write as _, path::PathBuf};

use chandler_catalog::names::similar;
use chandler_manifests::{Bundle, ManifestsError, Permissions, Profile, SETTINGS, SettingError, Settings};
use clap::Parser as _;
use serde_json::Value;

use super::{Arguments, Command};
use crate::{
    CommandError,
    view::{
        output::{self, Format},
        terminal::Terminal,
        text::count,
    },
    write::files::write_all,
};

/// Print everything that a cluster needs to run the controller
///
/// Namespace, CRDs, permissions, admission policies, the Deployment and what belongs to it, in an order that can be applied. It contacts no
/// cluster.
#[derive(Debug, clap::Args)]
#[command(after_long_help = help())]
pub struct Manifests {
    /// What the cluster is for. It decides the defaults of the settings
    #[arg(long, value_enum, value_name = "PROFILE", default_value_t = ProfileArgument::Standalone)]
    pub profile: ProfileArgument,

    /// Change a setting; the list is below. Repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,

    /// What is made of them. All except objects are files: --to names their directory
    #[arg(long, value_enum, value_name = "PACKAGING", default_value_t = Packaging::Objects)]
    pub format: Packaging,

    /// Directory for the files. It must not exist, or be empty
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Output format of the objects
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml, conflicts_with = "to")]
    pub output: Format,
}

/// What is made of the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Packaging {
    /// Objects on standard output
    Objects,
    /// A Helm chart whose values are the settings
    Chart,
    /// A plain+v0 bundle, for another Chandler or a release of OpenShift
    Plain,
    /// A registry+v1 bundle, for OLM or another Chandler
    Registry,
}

/// What a cluster is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ProfileArgument {
    /// One team installs bundles
    Standalone,
    /// OpenShift: ClusterOperators, mirror sets, the SCC restricted-v2, its monitoring
    #[value(name = "openshift")]
    OpenShift,
    /// Several teams install bundles, each with its own account (docs/tenants.md)
    MultiTenant,
}

impl From<ProfileArgument> for Profile {
    fn from(argument: ProfileArgument) -> Self {
        match argument {
            ProfileArgument::Standalone => Self::Standalone,
            ProfileArgument::OpenShift => Self::OpenShift,
            ProfileArgument::MultiTenant => Self::MultiTenant,
        }
    }
}

/// The end of the help: output, settings, exit codes and examples.
fn help() -> String {
    let mut text = "\
Output:
  Kubernetes objects on standard output, as YAML or JSON for `kubectl apply --server-side -f -`; notes on standard error.

  With --to, files in a directory, and nothing on standard output.

Settings:
"
    .to_owned();
    for setting in SETTINGS {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "  {}={}\n      {} [default: {}]\n",
            setting.key, setting.value, setting.what, setting.default
        );
    }
    text.push_str(
        "
Exit codes: 0 done, 2 wrong usage

Examples:
  Install the controller:
    chandler manifests --set image=registry.corp.example/chandler:v0.1.0 | kubectl apply --server-side -f -
  On OpenShift, on the nodes for infrastructure:
    chandler manifests --profile openshift --set image=registry.corp.example/chandler:v0.1.0 \\
      --set nodeSelector=node-role.kubernetes.io/infra= --set tolerations=node-role.kubernetes.io/infra:NoSchedule
  Write a Helm chart whose default values are these settings:
    chandler manifests --format chart --to ./chart --set image=registry.corp.example/chandler:v0.1.0
  Write a bundle for OLM:
    chandler manifests --format registry --to ./bundle --set image=registry.corp.example/chandler:v0.1.0
  Show what would change:
    chandler manifests --set image=registry.corp.example/chandler:v0.2.0 | kubectl diff --server-side -f -",
    );
    text
}

impl Manifests {
    /// Prints them.
    pub fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let mut settings = Settings::of(self.profile.into());
        for setting in &self.settings {
            settings.set(setting).map_err(refused)?;
        }
        let objects = chandler_manifests::objects(&settings).map_err(failed)?;
        check_arguments(&objects, &settings.namespace)?;
        match (self.files(&settings)?, &self.to) {
            (None, None) => output::print(&output::write(&objects, self.output)?)?,
            (Some(bundle), Some(directory)) => {
                write_all(&bundle.files, directory)?;
                terminal.line(format!("wrote {} into {}", count(bundle.files.len(), "file"), directory.display()));
                if !bundle.omitted.is_empty() {
                    terminal.line(format!("note: the bundle lacks what its format cannot hold: {}", omitted(&bundle)));
                }
            }
            (Some(_), None) => {
                return Err(CommandError::usage("this format consists of files: name their directory with --to DIR"));
            }
            (None, Some(_)) => {
                return Err(CommandError::usage(
                    "--to needs a --format that consists of files: chart, plain or registry",
                ));
            }
        }
        for note in notes(&settings) {
            terminal.line(format!("note: {note}"));
        }
        if self.format == Packaging::Registry && settings.admission_policies {
            terminal.line(
                "note: apply deploy/admission-policies.yaml beside the bundle: without it, every user who may write a BundleDeployment may \
                 name every account",
            );
        }
        Ok(())
    }

    /// The files of the format; `None` if it is printed.
    fn files(&self, settings: &Settings) -> Result<Option<Bundle>, CommandError> {
        let files = match self.format {
            Packaging::Objects => return Ok(None),
            Packaging::Chart => chandler_manifests::chart(settings).map(|files| Bundle { files, omitted: Vec::new() }),
            Packaging::Plain => chandler_manifests::plain(settings),
            Packaging::Registry => chandler_manifests::registry(settings),
        };
        files.map(Some).map_err(failed)
    }
}

/// What a bundle lacks, by kind: names, or a number if there are many.
fn omitted(bundle: &Bundle) -> String {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for (kind, name) in bundle.omitted.iter().filter_map(|object| object.split_once(' ')) {
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, names)) => names.push(name),
            None => kinds.push((kind, vec![name])),
        }
    }
    let kinds = kinds.into_iter().map(|(kind, names)| match names.len() {
        1 | 2 => format!("{kind} {}", names.join(" and ")),
        number => format!("{number} objects of kind {kind}"),
    });
    kinds.collect::<Vec<_>>().join(", ")
}

/// The settings contradict each other, or something that is a bug.
fn failed(error: ManifestsError) -> CommandError {
    match error {
        ManifestsError::Setting(error) => refused(error),
        other => CommandError::failed("failed to make the manifests").because(&other),
    }
}

/// Runs the parser of `chandler controller` over the arguments of the Deployment, and checks the accounts that they name: an error is found here, and not by
/// a Pod in this namespace.
fn check_arguments(objects: &[Value], namespace: &str) -> Result<(), CommandError> {
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment");
    let arguments = deployment.and_then(|it| it.pointer("/spec/template/spec/containers/0/args")?.as_array());
    let arguments = arguments.into_iter().flatten().filter_map(Value::as_str);
    match Arguments::try_parse_from(["chandler"].into_iter().chain(arguments)) {
        Ok(Arguments { command: Command::Controller(mut controller), .. }) => {
            // The variable that names it is for the machine that prints the manifests.
            namespace.clone_into(&mut controller.system_namespace);
            controller.accounts().map(drop).map_err(|error| {
                error.hint(
                    "--set arg=OPTION sets an option of the controller, such as --set arg=--accounts-in=NAMESPACE",
                )
            })
        }
        Ok(_) => Ok(()),
        Err(error) => {
            let error = error.to_string();
            let message = error.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
            Err(CommandError::usage(format!("the controller would refuse its options: {message}"))
                .hint("`chandler help controller` lists the options that --set arg=OPTION can name"))
        }
    }
}

/// A setting that is refused, with what helps.
fn refused(error: SettingError) -> CommandError {
    let message = error.to_string();
    match error {
        SettingError::Unknown(key) => {
            let found = similar(&key, SETTINGS.iter().map(|setting| setting.key), 1);
            let message = found.first().map_or(message.clone(), |known| format!("{message}; did you mean {known}?"));
            CommandError::usage(message).hint("`chandler help manifests` lists all settings")
        }
        SettingError::Syntax(_) | SettingError::Value { .. } => {
            CommandError::usage(message).hint("`chandler help manifests` lists all settings")
        }
        SettingError::Contradiction(_) => CommandError::usage(message),
    }
}

/// What the objects alone do not say.
fn notes(settings: &Settings) -> Vec<String> {
    let mut notes = Vec::new();
    if settings.image.is_none() {
        notes.push(format!(
            "the image {} is a placeholder: name yours with --set image=IMAGE (docs/install.md, An image)",
            settings.image()
        ));
    }
    if settings.permissions == Permissions::ClusterAdmin {
        notes.push(
            "every user who may create a BundleDeployment or a Resolution is an administrator of the cluster; the roles edit and admin do \
             not get this permission"
                .to_owned(),
        );
    }
    if !settings.admission_policies {
        notes.push(
            "without the admission policies, every user who may write a BundleDeployment may name every account; the roles edit and \
             admin do not get this permission"
                .to_owned(),
        );
    }
    if settings.content {
        notes.push(content(settings));
    }
    match settings.profile {
        Profile::MultiTenant => notes.push(
            "each tenant needs a namespace, an account and permissions: deploy/tenant.yaml (docs/tenants.md)".to_owned(),
        ),
        Profile::OpenShift if settings.permissions == Permissions::ServiceAccounts => notes.push(
            "PlatformOperators are refused until an account installs them: --set arg=--platform-service-account=NAME, or with all \
             permissions --set permissions=cluster-admin"
                .to_owned(),
        ),
        Profile::OpenShift | Profile::Standalone => {}
    }
    notes
}

fn content(settings: &Settings) -> String {
    match (settings.replicas(), &settings.cache_claim) {
        (_, None) => {
            "uploads are in the cache of one Pod, and the next leader lacks them: keep them with --set cache.claim=NAME"
                .to_owned()
        }
        (1, Some(_)) => {
            "one replica, since the claim may be of a volume that one node can attach: --set replicas=2 if several can"
                .to_owned()
        }
        (replicas, Some(claim)) => {
            format!("the claim {claim} needs a ReadWriteMany volume, since {replicas} replicas use it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_have_the_names_of_the_library() {
        for (argument, profile) in <ProfileArgument as clap::ValueEnum>::value_variants().iter().zip(Profile::ALL) {
            assert_eq!(Profile::from(*argument), profile);
            let value = clap::ValueEnum::to_possible_value(argument).unwrap();
            assert_eq!(value.get_name(), profile.name());
        }
    }

    /// Why settings are refused.
    fn refusal(profile: ProfileArgument, settings: &[&str]) -> String {
        let manifests = Manifests {
            profile,
            settings: settings.iter().map(|&setting| setting.to_owned()).collect(),
            format: Packaging::Objects,
            to: None,
            output: Format::Json,
        };
        manifests.run(&Terminal::output()).unwrap_err().to_string()
    }

    #[test]
    fn accounts_that_the_controller_would_refuse_are_refused() {
        let platform = ["arg=--platform-service-account=platform"];
        let refused = refusal(ProfileArgument::MultiTenant, &platform);
        for part in ["--platform-service-account", "--accounts-in=NAMESPACE", "multi-tenant"] {
            assert!(refused.contains(part), "{refused}");
        }
        let refused = refusal(ProfileArgument::MultiTenant, &["arg=--default-service-account=bundles"]);
        for part in ["--default-service-account", "--accounts-in", "--set arg="] {
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn a_mistyped_key_and_a_wrong_option_are_explained() {
        let message = |setting: &str| refusal(ProfileArgument::Standalone, &[setting]);
        insta::assert_snapshot!(
            ["replica=3", "zzz=1", "replicas", "replicas=9", "image=chandler", "arg=--concurency=3", "arg=--log-format=text"]
                .map(message)
                .join("\n"),
            @r#"
            error: there is no setting "replica"; did you mean replicas?
              hint: `chandler help manifests` lists all settings
            error: there is no setting "zzz"
              hint: `chandler help manifests` lists all settings
            error: "replicas" is not a setting: write KEY=VALUE
              hint: `chandler help manifests` lists all settings
            error: "9" is not a value of replicas: write a number from 1 to 5: one replica works, and the others wait
              hint: `chandler help manifests` lists all settings
            error: "chandler" is not a value of image: write the image with its registry, such as registry.corp.example/chandler:v0.1.0
              hint: `chandler help manifests` lists all settings
            error: the controller would refuse its options: unexpected argument '--concurency' found
              hint: `chandler help controller` lists the options that --set arg=OPTION can name
            error: the controller would refuse its options: the argument '--log-format <FORMAT>' cannot be used multiple times
              hint: `chandler help controller` lists the options that --set arg=OPTION can name
            "#
        );
    }
}
