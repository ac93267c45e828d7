//! Which optional packages are left out because the checks of the members refuse them, so that the others are installed.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Plan, PlannedMember, status::lines};

/// The most refusals of a summary.
const SUMMARY: usize = 20;

/// Why a member would be refused, or several that exclude each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Their packages.
    pub packages: Vec<String>,
    /// Why: a line that names the BundleDeployment.
    pub message: String,
}

/// The optional packages that have to be left out of a plan, with the reasons. Empty if the refusals concern what is required: then
/// nothing of the plan can be installed.
///
/// A package is left out if it or what it needs is refused. Of members that exclude each other, the one that is required or whose
/// package is first in the list stays.
pub fn left_out(refusals: &[Refusal], plan: &Plan, optional: &[String]) -> BTreeMap<String, Vec<String>> {
    let ranks = ranks(plan, optional);
    let mut left_out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for refusal in refusals {
        let mut refused: Vec<(Rank, &str)> =
            refusal.packages.iter().map(|it| (rank(&ranks, it), it.as_str())).collect();
        refused.sort_unstable();
        let stays = usize::from(refused.len() > 1);
        for (_, package) in refused.into_iter().skip(stays).filter(|(rank, _)| *rank != Rank::Required) {
            let need = optional.iter().filter(|it| reached(plan, [it.as_str()]).contains(package));
            for package in need {
                let reasons = left_out.entry(package.clone()).or_default();
                if !reasons.contains(&refusal.message) {
                    reasons.push(refusal.message.clone());
                }
            }
        }
    }
    left_out
}

/// All refusals in one text, with at most 20 of them.
pub fn summary(refusals: &[Refusal]) -> String {
    let all: Vec<String> = refusals.iter().map(|refusal| refusal.message.clone()).collect();
    lines(&all, SUMMARY).join("; ")
}

/// How much a member is preferred, the most preferred ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// Something that is not optional needs it.
    Required,
    /// The place in the list of the first optional package that needs it.
    Optional(usize),
}

/// The ranks of the members that only optional packages need.
fn ranks<'a>(plan: &'a Plan, optional: &'a [String]) -> BTreeMap<&'a str, Rank> {
    let mut ranks = BTreeMap::new();
    for (place, package) in optional.iter().enumerate() {
        for member in reached(plan, [package.as_str()]) {
            ranks.entry(member).or_insert(Rank::Optional(place));
        }
    }
    // What no optional package needs is required, and so is what it needs.
    let required: Vec<&str> =
        plan.set().map(|member| member.package.as_str()).filter(|package| !ranks.contains_key(package)).collect();
    for member in reached(plan, required) {
        ranks.remove(member);
    }
    ranks
}

fn rank(ranks: &BTreeMap<&str, Rank>, package: &str) -> Rank {
    ranks.get(package).copied().unwrap_or(Rank::Required)
}

/// Members of the set, and all that they need.
fn reached<'a>(plan: &'a Plan, roots: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let member = |package: &str| plan.set().find(|member: &&PlannedMember| member.package == package);
    let mut open: Vec<&PlannedMember> = roots.into_iter().filter_map(member).collect();
    let mut reached = BTreeSet::new();
    while let Some(next) = open.pop() {
        if reached.insert(next.package.as_str()) {
            open.extend(next.needs.iter().filter_map(|needed| member(needed)));
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members with what they need: `app: base`.
    fn plan(members: &[&str]) -> Plan {
        let member = |text: &&str| {
            let (package, needs) = text.split_once(": ").unwrap_or((text, ""));
            let needs = needs.split_whitespace().map(str::to_owned).collect();
            PlannedMember { package: package.to_owned(), needs, ..PlannedMember::default() }
        };
        Plan { members: members.iter().map(member).collect(), ..Plan::default() }
    }

    /// What is left out when these are refused: `base` alone, or `left+right`, which exclude each other.
    fn left_out_for(members: &[&str], optional: &[&str], refused: &[&str]) -> Vec<String> {
        let refusal = |text: &&str| {
            let packages = text.split('+').map(str::to_owned).collect();
            Refusal { packages, message: format!("{text}: no") }
        };
        let refusals: Vec<Refusal> = refused.iter().map(refusal).collect();
        let optional: Vec<String> = optional.iter().map(|it| (*it).to_owned()).collect();
        let left_out = left_out(&refusals, &plan(members), &optional);
        left_out.into_iter().map(|(package, reasons)| format!("{package} for {}", reasons.join("; "))).collect()
    }

    #[test]
    fn what_is_refused_is_left_out_with_all_that_need_it() {
        let members = ["app: base", "base", "other", "web: app"];
        let optional = ["app", "other", "web"];
        assert_eq!(left_out_for(&members, &optional, &["base"]), ["app for base: no", "web for base: no"]);
        assert_eq!(left_out_for(&members, &optional, &["app"]), ["app for app: no", "web for app: no"]);
        let both = left_out_for(&members, &optional, &["other", "web", "web"]);
        assert_eq!(both, ["other for other: no", "web for web: no"]);
    }

    #[test]
    fn what_is_required_cannot_be_left_out() {
        let members = ["app: base", "base", "other: base"];
        assert!(left_out_for(&members, &["app"], &["base"]).is_empty(), "other needs it");
        assert!(left_out_for(&members, &["app"], &["other"]).is_empty());
        assert!(left_out_for(&members, &[], &["app", "base"]).is_empty());
        assert!(left_out_for(&members, &["app"], &["unknown"]).is_empty());
        assert_eq!(left_out_for(&members, &["app"], &["other", "app"]), ["app for app: no"]);
    }

    #[test]
    fn of_those_that_exclude_each_other_the_first_of_the_list_stays() {
        let members = ["a", "b", "c: d", "d", "e"];
        assert_eq!(left_out_for(&members, &["b", "a", "c", "e"], &["a+b"]), ["a for a+b: no"]);
        assert_eq!(left_out_for(&members, &["a", "c"], &["a+e"]), ["a for a+e: no"]);
        assert_eq!(left_out_for(&members, &["a", "c"], &["a+d+e"]), ["a for a+d+e: no", "c for a+d+e: no"]);
        assert!(left_out_for(&members, &["a", "c"], &["b+e"]).is_empty(), "both are required");
    }

    #[test]
    fn members_that_need_each_other_end_the_search() {
        assert_eq!(left_out_for(&["a: b", "b: a"], &["a"], &["b"]), ["a for b: no"]);
    }
}
