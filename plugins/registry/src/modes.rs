//! Install modes: the namespaces that an operator may watch.

use std::collections::BTreeSet;

use crate::csv::InstallMode;

/// All namespaces, in the notation of operators.
pub(crate) const ALL_NAMESPACES: &str = "";

/// The install modes that an operator supports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InstallModes(BTreeSet<String>);

impl InstallModes {
    /// The modes that the ClusterServiceVersion marks as supported. Unknown names are kept for messages.
    pub(crate) fn of(declared: &[InstallMode]) -> Self {
        Self(declared.iter().filter(|mode| mode.supported).map(|mode| mode.kind.clone()).collect())
    }

    /// All namespaces.
    pub(crate) fn all(&self) -> bool {
        self.0.contains("AllNamespaces")
    }

    /// The install namespace.
    pub(crate) fn own(&self) -> bool {
        self.0.contains("OwnNamespace")
    }

    /// One other namespace.
    pub(crate) fn single(&self) -> bool {
        self.0.contains("SingleNamespace")
    }

    /// Several namespaces.
    pub(crate) fn multi(&self) -> bool {
        self.0.contains("MultiNamespace")
    }

    /// Whether `AllNamespaces` is the only one.
    pub(crate) fn only_all(&self) -> bool {
        self.all() && self.0.len() == 1
    }

    /// The default: all namespaces if supported, else none. It is never the operator's own namespace: what an operator
    /// watches must be configured.
    pub(crate) fn default_targets(&self) -> Vec<String> {
        if self.all() { vec![ALL_NAMESPACES.to_owned()] } else { Vec::new() }
    }

    /// Why these targets are not supported, if so. The messages come from OLM v1.
    pub(crate) fn check_targets(&self, install_namespace: &str, targets: &[String]) -> Result<(), String> {
        let set: BTreeSet<&str> = targets.iter().map(String::as_str).collect();
        let own_is_refused = || Err(format!("supported install modes {self} do not support targeting own namespace"));
        match (set.len(), set.first().copied()) {
            (0, _) if self.multi() => return Err("at least one target namespace must be specified".to_owned()),
            (0, _) => return Err("exactly one target namespace must be specified".to_owned()),
            (1, Some(ALL_NAMESPACES)) if self.all() => return Ok(()),
            (1, Some(ALL_NAMESPACES)) => {
                return Err(format!("supported install modes {self} do not support targeting all namespaces"));
            }
            (1, Some(target)) if target == install_namespace => {
                return if self.own() { Ok(()) } else { own_is_refused() };
            }
            (1, _) if self.single() => return Ok(()),
            (1, _) => {}
            _ if set.contains(install_namespace) && !self.own() => return own_is_refused(),
            _ if self.multi() && !set.contains(ALL_NAMESPACES) => return Ok(()),
            _ => {}
        }
        Err(format!("supported install modes {self} do not support target namespaces [{}]", targets.join(" ")))
    }
}

impl std::fmt::Display for InstallModes {
    /// `[A B]`, as Go formats a list.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[")?;
        for (index, mode) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(" ")?;
            }
            f.write_str(mode)?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn modes(letters: &str) -> InstallModes {
        let all = [('A', "AllNamespaces"), ('M', "MultiNamespace"), ('O', "OwnNamespace"), ('S', "SingleNamespace")];
        let declared: Vec<InstallMode> = all
            .iter()
            .map(|(letter, kind)| InstallMode { kind: (*kind).to_owned(), supported: letters.contains(*letter) })
            .collect();
        InstallModes::of(&declared)
    }

    #[test]
    fn targets_and_modes() {
        let accepted = [("A", ""), ("O", "own"), ("S", "other"), ("AS", "other"), ("M", "a,b"), ("MO", "own,b")];
        for (letters, targets) in accepted {
            let targets: Vec<String> = targets.split(',').map(str::to_owned).collect();
            assert_eq!(modes(letters).check_targets("own", &targets), Ok(()), "{letters} {targets:?}");
        }
        let refused = [
            ("S", "own", "supported install modes [SingleNamespace] do not support targeting own namespace"),
            ("O", "other", "supported install modes [OwnNamespace] do not support target namespaces [other]"),
            (
                "OS",
                "",
                "supported install modes [OwnNamespace SingleNamespace] do not support targeting all namespaces",
            ),
            ("M", "own,b", "supported install modes [MultiNamespace] do not support targeting own namespace"),
            ("M", "a", "supported install modes [MultiNamespace] do not support target namespaces [a]"),
            (
                "AM",
                ",a",
                "supported install modes [AllNamespaces MultiNamespace] do not support target namespaces [ a]",
            ),
            (
                "AS",
                "a,b",
                "supported install modes [AllNamespaces SingleNamespace] do not support target namespaces [a b]",
            ),
        ];
        for (letters, targets, want) in refused {
            let targets: Vec<String> = targets.split(',').map(str::to_owned).collect();
            assert_eq!(modes(letters).check_targets("own", &targets), Err(want.to_owned()));
        }
        let none = |letters| modes(letters).check_targets("own", &[]).unwrap_err();
        assert_eq!(none("S"), "exactly one target namespace must be specified");
        assert_eq!(none("MO"), "at least one target namespace must be specified");
    }

    #[test]
    fn only_all_namespaces_is_a_default() {
        assert_eq!(modes("AO").default_targets(), [""]);
        assert_eq!(modes("O").default_targets(), [""; 0]);
    }
}
