//! The object that a command is about: `NAME`, or the name with its kind, as in `resolution/NAME`. Each command declares the kinds that it
//! takes ([`Takes`]), and which command helps with the others.

use std::{fmt, path::Path};

use chandler_api::ReportingKind::{
    self, Alert, BundleDeployment, Catalog, PlatformOperator, PlatformPolicy, ProvisionerClass, Receiver, Resolution,
};
use chandler_core::dns_name::{self, SUBDOMAIN_LENGTH};

use crate::{
    read::origin,
    view::subject::{Subject, set_name},
};

/// BundleDeployments only.
pub const DEPLOYMENTS: Takes = Takes::kinds(&[BundleDeployment]);

/// The kinds that are installed, or lead to something that is.
pub const INSTALLED: Takes = Takes::kinds(&[BundleDeployment, Resolution]);

/// The kinds that can be suspended.
pub const SUSPENDED: Takes = Takes::kinds(&[BundleDeployment, Resolution, Catalog]);

/// An object on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind, if it is written.
    pub kind: Option<ReportingKind>,
    /// The name.
    pub name: String,
}

impl Target {
    /// The kind. If none is written, a BundleDeployment.
    pub fn kind(&self) -> ReportingKind {
        self.kind.unwrap_or(BundleDeployment)
    }

    /// Whether it is a Resolution.
    pub fn is_resolution(&self) -> bool {
        self.kind() == Resolution
    }

    /// The object.
    pub fn subject(&self) -> Subject<'_> {
        Subject::new(self.kind(), &self.name)
    }
}

impl fmt::Display for Target {
    /// As it is written on a command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.subject().fmt(f)
    }
}

/// The kinds that a command takes. The first is the kind of a name without one.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    kinds: &'static [ReportingKind],
    instead: &'static [(ReportingKind, &'static str)],
}

impl Takes {
    /// A command that takes these kinds.
    pub const fn kinds(kinds: &'static [ReportingKind]) -> Self {
        Self { kinds, instead: &[] }
    }

    /// What helps with objects of other kinds, with `NAME` for their name. For kinds that are missing here, `status` and `explain` help.
    #[must_use]
    pub const fn instead(self, instead: &'static [(ReportingKind, &'static str)]) -> Self {
        Self { instead, ..self }
    }

    /// The kinds. The first is the kind of a name without one.
    pub const fn taken(self) -> &'static [ReportingKind] {
        self.kinds
    }

    /// A parser of targets.
    pub fn target(self) -> impl Fn(&str) -> Result<Target, String> + Clone + Send + Sync + 'static {
        move |text| self.parse(text)
    }

    /// A parser of names, for a command that takes one kind.
    pub fn name(self) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
        move |text| self.parse(text).map(|target| target.name)
    }

    /// A parser into the name of a BundleDeployment; for a Resolution, of its set.
    pub fn deployment(self) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
        move |text| {
            let target = self.parse(text)?;
            Ok(if target.is_resolution() { set_name(&target.name) } else { target.name })
        }
    }

    /// A parser of `NAME|BUNDLE` into the name of a BundleDeployment, as [`deployment`](Self::deployment) does, or the text of a bundle. A
    /// path that exists is a bundle, and so is a text with a slash, dot or colon whose part before the slash is not a kind.
    pub fn deployment_or_bundle(self) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
        move |text| {
            let has_kind = text.split_once('/').is_some_and(|(written, _)| kind(written).is_some());
            if origin::is_bundle(text) && (!has_kind || Path::new(text).exists()) {
                return Ok(text.to_owned());
            }
            self.deployment()(text)
        }
    }

    /// Like [`deployment_or_bundle`](Self::deployment_or_bundle), and `class/NAME` for a ProvisionerClass, as [`class_name`] reads it.
    pub fn deployment_bundle_or_class(self) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
        let others = self.deployment_or_bundle();
        move |text| {
            let written = text.split_once('/').and_then(|(written, _)| kind(written));
            if written == Some(ProvisionerClass) && !Path::new(text).exists() {
                let target = Self::kinds(&[ProvisionerClass]).parse(text)?;
                return Ok(format!("{CLASS}{}", target.name));
            }
            others(text)
        }
    }

    /// Parses `NAME` or `KIND/NAME`.
    ///
    /// # Errors
    /// The kind is unknown or the command does not take it, or no object can have the name.
    pub fn parse(self, text: &str) -> Result<Target, String> {
        if is_path(text) {
            return Err(format!(
                "{text:?} is a path, and this is about what is installed: `chandler list` lists the names; {}",
                self.forms()
            ));
        }
        let (kind, name) = match text.split_once('/') {
            Some((written, name)) => (Some(kind(written).ok_or_else(|| self.unknown(written))?), name),
            None => (None, text),
        };
        if !dns_name::is_subdomain(name) {
            return Err(format!(
                "{name:?} is not a valid name: use a-z, 0-9, - and dots, and at most {SUBDOMAIN_LENGTH} characters; {}",
                self.forms()
            ));
        }
        match kind.filter(|kind| !self.kinds.contains(kind)) {
            Some(other) => Err(self.refused(other, name)),
            None => Ok(Target { kind, name: name.to_owned() }),
        }
    }

    fn unknown(self, kind: &str) -> String {
        format!("unknown kind {kind:?}; {}", self.forms())
    }

    /// The forms that the command takes: `write NAME or resolution/NAME`.
    fn forms(self) -> String {
        let written = |kind: &ReportingKind| format!("`{}/NAME`", kind.as_str().to_lowercase());
        match self.kinds {
            [only] => format!("write `NAME` or {}", written(only)),
            kinds => {
                let forms: Vec<String> =
                    std::iter::once("`NAME`".to_owned()).chain(kinds.iter().skip(1).map(written)).collect();
                format!("write {}", joined(&forms, "or"))
            }
        }
    }

    fn refused(self, kind: ReportingKind, name: &str) -> String {
        let taken: Vec<String> = self.kinds.iter().map(|kind| plural(*kind).to_owned()).collect();
        let instead = self.instead.iter().find(|(other, _)| *other == kind);
        let help = instead.map_or_else(|| default_help(kind), |(_, help)| help);
        format!("this command is about {}: {}", joined(&taken, "and"), help.replace("NAME", name))
    }
}

/// What precedes the name of a class. No BundleDeployment has such a name, and a bundle of that path is taken for one.
const CLASS: &str = "provisionerclass/";

/// The name of the ProvisionerClass that an argument of [`Takes::deployment_bundle_or_class`] names, if it names one.
pub fn class_name(argument: &str) -> Option<&str> {
    argument.strip_prefix(CLASS).filter(|_| !Path::new(argument).exists())
}

/// Whether an argument is meant as a path: no object has such a name.
pub fn is_path(text: &str) -> bool {
    [".", "/", "~"].iter().any(|begin| text.starts_with(begin))
}

/// What helps with an object of this kind.
const fn default_help(kind: ReportingKind) -> &'static str {
    match kind {
        BundleDeployment => "`chandler status NAME` shows the BundleDeployment",
        Resolution => "`chandler explain resolution/NAME` names the BundleDeployments of the Resolution",
        PlatformOperator => {
            "`chandler explain platformoperator/NAME` names the BundleDeployment of the PlatformOperator"
        }
        Catalog => "`chandler status catalog/NAME` shows the Catalog",
        ProvisionerClass => "`chandler status provisionerclass/NAME` shows the ProvisionerClass",
        PlatformPolicy => "`chandler status platformpolicy/NAME` shows the PlatformPolicy",
        Receiver => "`chandler status receiver/NAME` shows the Receiver",
        Alert => "`chandler status alert/NAME` shows the Alert",
    }
}

/// The plural of a kind, for messages.
const fn plural(kind: ReportingKind) -> &'static str {
    match kind {
        BundleDeployment => "BundleDeployments",
        Resolution => "Resolutions",
        PlatformOperator => "PlatformOperators",
        Catalog => "Catalogs",
        ProvisionerClass => "ProvisionerClasses",
        PlatformPolicy => "PlatformPolicies",
        Receiver => "Receivers",
        Alert => "Alerts",
    }
}

fn joined(parts: &[String], word: &str) -> String {
    match parts {
        [before @ .., last] if !before.is_empty() => format!("{} {word} {last}", before.join(", ")),
        parts => parts.concat(),
    }
}

/// The kind by its name, plural or short name, with or without its group, as kubectl takes them.
pub fn kind(text: &str) -> Option<ReportingKind> {
    let text = text.to_ascii_lowercase();
    let (name, group) = text.split_once('.').map_or((text.as_str(), None), |(name, group)| (name, Some(group)));
    let (kind, own) = match name {
        "bundledeployment" | "bundledeployments" | "bd" | "bds" => (BundleDeployment, "core.rukpak.io"),
        "resolution" | "resolutions" => (Resolution, "core.deppy.io"),
        "platformoperator" | "platformoperators" | "po" | "pos" => (PlatformOperator, "platform.openshift.io"),
        "catalog" | "catalogs" => (Catalog, "chandler.dev"),
        "provisionerclass" | "provisionerclasses" | "class" => (ProvisionerClass, "chandler.dev"),
        "platformpolicy" | "platformpolicies" => (PlatformPolicy, "chandler.dev"),
        "receiver" | "receivers" => (Receiver, "chandler.dev"),
        "alert" | "alerts" => (Alert, "chandler.dev"),
        _ => return None,
    };
    group
        .is_none_or(|group| group == own || group.strip_suffix(own).is_some_and(|rest| rest.ends_with('.')))
        .then_some(kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Takes = Takes::kinds(&[
        BundleDeployment,
        Resolution,
        PlatformOperator,
        Catalog,
        ProvisionerClass,
        PlatformPolicy,
        Receiver,
        Alert,
    ]);

    #[test]
    fn a_kind_is_optional_and_may_be_plural_short_or_with_its_group() {
        for (text, kind, name) in [
            ("shop", None, "shop"),
            ("bd/shop", Some(BundleDeployment), "shop"),
            ("bundledeployments.core.rukpak.io/shop", Some(BundleDeployment), "shop"),
            ("resolution/shop", Some(Resolution), "shop"),
            ("Resolutions/shop", Some(Resolution), "shop"),
            ("resolutions.v1alpha1.core.deppy.io/shop", Some(Resolution), "shop"),
            ("po/mesh", Some(PlatformOperator), "mesh"),
            ("platformoperator/mesh.a", Some(PlatformOperator), "mesh.a"),
            ("catalog/ours", Some(Catalog), "ours"),
            ("ProvisionerClasses.chandler.dev/helm", Some(ProvisionerClass), "helm"),
            ("platformpolicy/platform-operators", Some(PlatformPolicy), "platform-operators"),
            ("receivers/pushes", Some(Receiver), "pushes"),
            ("alerts.chandler.dev/chat", Some(Alert), "chat"),
        ] {
            assert_eq!(ALL.parse(text), Ok(Target { kind, name: name.to_owned() }), "{text}");
        }
        let long = format!("catalog/{}", "a".repeat(254));
        for text in ["", "resolution/", "pod/x", "resolutions.example.com/x", "a/b/c", "resolution/A", "-", &long] {
            assert!(ALL.parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_command_refuses_the_kinds_that_it_does_not_take_and_says_what_helps() {
        let deleted =
            Takes::kinds(&[BundleDeployment]).instead(&[(Catalog, "`chandler catalog remove NAME` removes it")]);
        let messages: Vec<String> = ["po/mesh", "catalog/ours", "pod/x", "UPPER", "resolution/a/b"]
            .iter()
            .flat_map(|text| [INSTALLED.parse(text), deleted.parse(text)])
            .map(|parsed| parsed.unwrap_err())
            .collect();
        insta::assert_snapshot!(messages.join("\n"));
    }

    #[test]
    fn a_path_in_place_of_a_name_is_called_a_path() {
        let messages = ["./harbour", "../harbour", "/srv/harbour.tgz", "~/harbour", "."]
            .map(|text| (INSTALLED.parse(text).unwrap_err(), DEPLOYMENTS.parse(text).unwrap_err()));
        for (of_several, of_one) in &messages {
            assert!(of_several.contains("is a path") && of_one.contains("is a path"), "{of_several}, {of_one}");
        }
        insta::assert_snapshot!(messages[0].0, @r#""./harbour" is a path, and this is about what is installed: `chandler list` lists the names; write `NAME` or `resolution/NAME`"#);
    }

    #[test]
    fn a_bundle_has_a_slash_dot_or_colon_and_no_kind() {
        let parse = |text: &str| INSTALLED.deployment_or_bundle()(text);
        for (text, parsed) in [
            ("shop", "shop"),
            ("bundledeployment/shop", "shop"),
            ("resolution/shop", "resolveset-shop"),
            ("./bd/shop", "./bd/shop"),
            ("quay.io/bd/shop", "quay.io/bd/shop"),
            ("library/shop:v1", "library/shop:v1"),
            ("shop.tgz", "shop.tgz"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(parsed));
        }
        for text in ["UPPER", "bd/UPPER", "catalog/ours", ""] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_class_is_taken_where_bundles_are_if_it_is_called_one() {
        let parse = |text: &str| INSTALLED.deployment_bundle_or_class()(text);
        for text in ["class/helm", "provisionerclasses.chandler.dev/helm"] {
            assert_eq!(class_name(&parse(text).unwrap()), Some("helm"));
        }
        for text in ["shop", "resolution/shop", "./class/helm", "quay.io/class/helm"] {
            assert_eq!(class_name(&parse(text).unwrap()), None, "{text}");
        }
        assert!(parse("class/UPPER").is_err() && parse("catalog/ours").is_err());
    }

    #[test]
    fn every_kind_has_a_name_on_the_command_line() {
        for of in ReportingKind::ALL {
            assert_eq!(kind(of.as_str()), Some(*of));
            assert_eq!(kind(plural(*of)), Some(*of));
        }
    }

    #[test]
    fn a_target_is_written_as_the_next_command_takes_it() {
        assert_eq!(INSTALLED.deployment()("resolution/shop").as_deref(), Ok("resolveset-shop"));
        assert_eq!(INSTALLED.deployment()("shop").as_deref(), Ok("shop"));
        for (text, written) in [("bd/shop", "shop"), ("shop", "shop"), ("resolutions/shop", "resolution/shop")] {
            assert_eq!(ALL.parse(text).unwrap().to_string(), written);
        }
    }
}
