//! What the component that a class has now would change in the BundleDeployments that use it. Pure.

use serde::Serialize;

use super::{
    preflight::{Checked, Outcome},
    text::{count, one_line},
};

/// The number of BundleDeployments by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Those that have the component, or whose release it would not change.
    pub unchanged: usize,
    /// Those whose objects would change.
    pub changed: usize,
    /// Those that it does not render, and their component does.
    pub refused: usize,
    /// Those that neither renders.
    pub refused_by_both: usize,
    /// Those that could not be compared.
    pub unchecked: usize,
}

/// What a component would change.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassReport {
    /// The class.
    pub class: String,
    /// The component, by version and digest.
    pub component: String,
    /// How many BundleDeployments have which outcome.
    pub summary: Summary,
    /// Those that are not unchanged, by name.
    pub deployments: Vec<Checked>,
    /// The size of their changes.
    #[serde(skip)]
    bytes: usize,
}

impl ClassReport {
    /// A report about no BundleDeployment yet.
    pub fn new(class: &str, component: &str) -> Self {
        Self { class: one_line(class), component: one_line(component), ..Self::default() }
    }

    /// Counts a BundleDeployment, and returns it bounded if there is something to say about it.
    pub fn count(&mut self, mut checked: Checked) -> Option<Checked> {
        let summary = &mut self.summary;
        let counter = match checked.outcome {
            Outcome::Unchanged | Outcome::NotBuiltIn => &mut summary.unchanged,
            Outcome::Changed => &mut summary.changed,
            Outcome::Refused => &mut summary.refused,
            Outcome::RefusedByBoth => &mut summary.refused_by_both,
            Outcome::Unchecked => &mut summary.unchecked,
        };
        *counter += 1;
        checked.bound();
        (!matches!(checked.outcome, Outcome::Unchanged | Outcome::NotBuiltIn)).then_some(checked)
    }

    /// Keeps a BundleDeployment for the data.
    pub fn keep(&mut self, mut checked: Checked) {
        checked.fit(&mut self.bytes);
        self.deployments.push(checked);
    }

    /// The counts, on one line.
    pub fn line(&self) -> String {
        let Summary { unchanged, changed, refused, refused_by_both, unchecked } = self.summary;
        let total = unchanged + changed + refused + refused_by_both + unchecked;
        let mut line = format!(
            "class {} with {}: {}, {unchanged} unchanged, {changed} changed, {refused} refused",
            self.class,
            self.component,
            count(total, "BundleDeployment")
        );
        for (number, what) in [(refused_by_both, "refused by both components"), (unchecked, "not compared")] {
            if number > 0 {
                line.extend([", ", &number.to_string(), " ", what]);
            }
        }
        line + "; nothing was changed"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_unchanged_is_listed_and_all_are_counted() {
        let mut report = ClassReport::new("helm", "1.1.0 (sha256:2)");
        for outcome in [
            Outcome::Unchanged,
            Outcome::Changed,
            Outcome::Refused,
            Outcome::RefusedByBoth,
            Outcome::Unchecked,
            Outcome::Unchanged,
        ] {
            if let Some(checked) = report.count(Checked::new("a", "n", outcome)) {
                report.keep(checked);
            }
        }
        assert_eq!(report.deployments.len(), 4);
        insta::assert_snapshot!(
            report.line(),
            @"class helm with 1.1.0 (sha256:2): 6 BundleDeployments, 2 unchanged, 1 changed, 1 refused, 1 refused by both components, 1 not compared; nothing was changed"
        );
    }
}
