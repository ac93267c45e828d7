//! The names of the ClusterOperators.

/// The names of the ClusterOperators of one controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    suffix: String,
}

const PACKAGE: &str = "platform-operator-";

impl Names {
    /// The names of OpenShift with this suffix, for controllers that share a cluster. Default: none.
    pub fn with_suffix(suffix: impl Into<String>) -> Self {
        Self { suffix: suffix.into() }
    }

    /// The ClusterOperator for all packages.
    pub fn aggregated(&self) -> String {
        format!("platform-operators-aggregated{}", self.suffix)
    }

    /// The ClusterOperator for the controller.
    pub fn core(&self) -> String {
        format!("platform-operators-core{}", self.suffix)
    }

    /// The ClusterOperator for the package of one PlatformOperator.
    pub fn package(&self, operator: &str) -> String {
        format!("{PACKAGE}{operator}{}", self.suffix)
    }

    /// The PlatformOperator that a ClusterOperator with this name is for.
    pub fn operator<'a>(&self, name: &'a str) -> Option<&'a str> {
        name.strip_prefix(PACKAGE)?.strip_suffix(self.suffix.as_str()).filter(|operator| !operator.is_empty())
    }

    /// Whether a ClusterOperator of this controller may have this name.
    pub fn includes(&self, name: &str) -> bool {
        name == self.aggregated() || name == self.core() || self.operator(name).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_openshift_and_lead_back_to_the_platform_operator() {
        let (plain, suffixed) = (Names::default(), Names::with_suffix("-e2e-1"));
        assert_eq!(
            (plain.aggregated(), plain.core()),
            ("platform-operators-aggregated".to_owned(), "platform-operators-core".to_owned())
        );
        for names in [plain, suffixed] {
            // A PlatformOperator may have any name.
            for operator in ["core", "aggregated", "a.b"] {
                let name = names.package(operator);
                assert_eq!(names.operator(&name), Some(operator));
                assert!(names.includes(&name) && name != names.core() && name != names.aggregated());
            }
            assert!(names.includes(&names.core()) && !names.includes("etcd") && !names.includes("platform-operator-"));
        }
    }
}
