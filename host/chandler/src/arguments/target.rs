//! What a command is about: `NAME`, or the name with its kind, as in `resolution/NAME`.

use std::fmt;

use chandler_core::dns_name;

use crate::read::explained::TargetKind;

/// An object on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The kind, if it is written.
    pub kind: Option<TargetKind>,
    /// The name.
    pub name: String,
}

impl Target {
    /// Parses `NAME` or `KIND/NAME`.
    ///
    /// # Errors
    /// The kind is unknown, or no object can have the name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, name) = match text.split_once('/') {
            Some((kind, name)) => (Some(self::kind(kind).ok_or_else(|| unknown(kind))?), name),
            None => (None, text),
        };
        if name.is_empty() || name.split('.').any(|part| !dns_name::is_part(part)) {
            return Err(format!("{name:?} is not a valid name: use a-z, 0-9, - and dots"));
        }
        Ok(Self { kind, name: name.to_owned() })
    }

    /// Like [`parse`](Self::parse), for commands that PlatformOperators have no use for.
    ///
    /// # Errors
    /// It is a PlatformOperator, too.
    pub fn parse_installed(text: &str) -> Result<Self, String> {
        let target = Self::parse(text)?;
        if target.kind == Some(TargetKind::PlatformOperator) {
            return Err(format!(
                "this command is about BundleDeployments and Resolutions: `chandler explain platformoperator/{}` shows which",
                target.name
            ));
        }
        Ok(target)
    }

    /// The kind. If none is written, a BundleDeployment.
    pub fn kind(&self) -> TargetKind {
        self.kind.unwrap_or(TargetKind::BundleDeployment)
    }

    /// Whether it is a Resolution.
    pub fn is_resolution(&self) -> bool {
        self.kind() == TargetKind::Resolution
    }
}

impl fmt::Display for Target {
    /// As it is written on a command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", prefix(self.kind()), self.name)
    }
}

/// What `chandler reconcile` is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reconciled {
    /// A BundleDeployment or a Resolution.
    Installed(Target),
    /// A ProvisionerClass of this name.
    Class(String),
}

impl Reconciled {
    /// Parses `NAME`, `resolution/NAME` or `provisionerclass/NAME`.
    ///
    /// # Errors
    /// It is none of these.
    pub fn parse(text: &str) -> Result<Self, String> {
        let Some((kind, name)) = text.split_once('/') else {
            return Target::parse_installed(text).map(Self::Installed);
        };
        let kind = kind.to_ascii_lowercase();
        let kind = kind.strip_suffix(".chandler.dev").unwrap_or(&kind);
        if !matches!(kind, "provisionerclass" | "provisionerclasses") {
            return Target::parse_installed(text).map(Self::Installed);
        }
        if name.is_empty() || name.split('.').any(|part| !dns_name::is_part(part)) {
            return Err(format!("{name:?} is not a valid name: use a-z, 0-9, - and dots"));
        }
        Ok(Self::Class(name.to_owned()))
    }
}

/// Parses a target into the name of its BundleDeployment; for a Resolution, its set.
///
/// # Errors
/// The target cannot be parsed, or is a PlatformOperator.
pub fn deployment(text: &str) -> Result<String, String> {
    let target = Target::parse_installed(text)?;
    Ok(if target.is_resolution() { format!("resolveset-{}", target.name) } else { target.name })
}

/// The prefix of names on the command line; none for the kind that most commands are about.
const fn prefix(kind: TargetKind) -> &'static str {
    match kind {
        TargetKind::BundleDeployment => "",
        TargetKind::Resolution => "resolution/",
        TargetKind::PlatformOperator => "platformoperator/",
    }
}

/// The kind by its name, plural or short name, with or without its group, as kubectl takes them.
fn kind(text: &str) -> Option<TargetKind> {
    let text = text.to_ascii_lowercase();
    let (name, group) = text.split_once('.').map_or((text.as_str(), None), |(name, group)| (name, Some(group)));
    let (kind, own) = match name {
        "bundledeployment" | "bundledeployments" | "bd" | "bds" => (TargetKind::BundleDeployment, "core.rukpak.io"),
        "resolution" | "resolutions" => (TargetKind::Resolution, "core.deppy.io"),
        "platformoperator" | "platformoperators" | "po" | "pos" => {
            (TargetKind::PlatformOperator, "platform.openshift.io")
        }
        _ => return None,
    };
    group
        .is_none_or(|group| group == own || group.strip_suffix(own).is_some_and(|rest| rest.ends_with('.')))
        .then_some(kind)
}

fn unknown(kind: &str) -> String {
    format!("unknown kind {kind:?}: write `NAME`, `resolution/NAME` or `platformoperator/NAME`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_optional_and_may_be_plural_short_or_with_its_group() {
        use TargetKind::{BundleDeployment as B, PlatformOperator as P, Resolution as R};
        for (text, kind, name) in [
            ("shop", None, "shop"),
            ("bd/shop", Some(B), "shop"),
            ("bundledeployments.core.rukpak.io/shop", Some(B), "shop"),
            ("resolution/shop", Some(R), "shop"),
            ("Resolutions/shop", Some(R), "shop"),
            ("resolutions.v1alpha1.core.deppy.io/shop", Some(R), "shop"),
            ("po/mesh", Some(P), "mesh"),
            ("platformoperator/mesh.a", Some(P), "mesh.a"),
        ] {
            assert_eq!(Target::parse(text), Ok(Target { kind, name: name.to_owned() }), "{text}");
        }
        for text in ["", "resolution/", "pod/x", "resolutions.example.com/x", "a/b/c", "resolution/A", "-"] {
            assert!(Target::parse(text).is_err(), "{text}");
        }
        assert!(Target::parse_installed("po/mesh").unwrap_err().contains("chandler explain platformoperator/mesh"));
    }

    #[test]
    fn a_class_can_be_reconciled() {
        let class = |text| Reconciled::parse(text) == Ok(Reconciled::Class("helm".to_owned()));
        assert!(class("provisionerclass/helm") && class("ProvisionerClasses.chandler.dev/helm"));
        let installed = |text| matches!(Reconciled::parse(text), Ok(Reconciled::Installed(_)));
        assert!(installed("shop") && installed("resolution/shop"));
        for text in ["provisionerclass/", "provisionerclass/A", "pod/x", "platformoperator/mesh"] {
            assert!(Reconciled::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_target_is_written_as_the_next_command_takes_it() {
        assert_eq!(deployment("resolution/shop").as_deref(), Ok("resolveset-shop"));
        assert_eq!(deployment("shop").as_deref(), Ok("shop"));
        for (text, written) in [("bd/shop", "shop"), ("shop", "shop"), ("resolutions/shop", "resolution/shop")] {
            assert_eq!(Target::parse(text).unwrap().to_string(), written);
        }
    }
}
