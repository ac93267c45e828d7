//! Which optional packages are left out because the checks of the members refuse them, so that the others are installed.

use std::collections::{BTreeMap, BTreeSet};

use chandler_api::PackageRequest;
use chandler_resolver::Excluded;

use crate::{Plan, PlannedMember, optional::LINES, status::lines};

/// The most refusals of a summary.
const SUMMARY: usize = 20;

/// Why a member would be refused, or several that exclude each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Refusal {
    /// Their packages.
    pub packages: Vec<String>,
    /// Why: a line that names the BundleDeployment.
    pub message: String,
    /// Why the version of the bundle is not possible on this cluster, where that is the reason: another one may be.
    pub excludes: Option<String>,
}

/// The bundles of a plan that are not possible on this cluster, as their files say: the resolver is asked for others.
pub fn excluded(refusals: &[Refusal], plan: &Plan) -> Vec<Excluded> {
    let of = |refusal: &Refusal| {
        let [package] = refusal.packages.as_slice() else { return None };
        let member = plan.set().find(|member| member.package == *package)?;
        let (package, bundle) = (package.clone(), member.bundle.clone());
        Some(Excluded { package, bundle, why: refusal.excludes.clone()? })
    };
    refusals.iter().filter_map(of).collect()
}

/// The optional ones among the requested packages that have to be left out of a plan, with the reasons. Empty if the refusals concern what is required: then
/// nothing of the plan can be installed.
///
/// A package is left out if it or what it needs is refused. Of members that exclude each other, the one that is required or whose
/// package is first in the list stays.
pub fn left_out(refusals: &[Refusal], plan: &Plan, requests: &[PackageRequest]) -> BTreeMap<String, Vec<String>> {
    let names = |optional: bool| requests.iter().filter(move |it| it.optional == optional).map(|it| it.name.as_str());
    let (optional, required): (Vec<&str>, Vec<&str>) = (names(true).collect(), names(false).collect());
    let needed_by = needed_by(plan, &optional, &required);
    let of = |package: &String| needed_by.get(package.as_str()).map(Vec::as_slice).unwrap_or_default();
    let mut left_out: BTreeMap<String, Vec<String>> = BTreeMap::new();
    // Of what is excluded, the resolver may find another version.
    let refusals = refusals.iter().filter(|it| it.excludes.is_none());
    let (alone, several): (Vec<&Refusal>, Vec<&Refusal>) = refusals.partition(|it| it.packages.len() == 1);
    for refusal in alone.into_iter().chain(several) {
        let is_gone = |places: &[usize]| {
            let mut packages = places.iter().filter_map(|place| optional.get(*place));
            !places.is_empty() && packages.all(|package| left_out.contains_key(*package))
        };
        // Without a place in the list, a member is required.
        let mut refused: Vec<(Option<usize>, &String)> =
            refusal.packages.iter().map(|package| (of(package).first().copied(), package)).collect();
        refused.sort_unstable();
        if refusal.packages.len() > 1 {
            refused.retain(|(_, package)| !is_gone(of(package)));
            refused = refused.split_off(1.min(refused.len()));
        }
        for place in refused.into_iter().flat_map(|(_, package)| of(package)) {
            let Some(package) = optional.get(*place) else { continue };
            let reasons = left_out.entry((*package).to_owned()).or_default();
            if !reasons.contains(&refusal.message) && reasons.len() < LINES {
                reasons.push(refusal.message.clone());
            }
        }
    }
    left_out
}

/// The refused members that only optional packages need which are left out: their installed versions stay, so that what is left out can stay
/// as well and the others are not stopped.
pub fn held(
    refusals: &[Refusal],
    plan: &Plan,
    requests: &[PackageRequest],
    left_out: &BTreeMap<String, Vec<String>>,
) -> BTreeSet<String> {
    let names = |optional: bool| requests.iter().filter(move |it| it.optional == optional).map(|it| it.name.as_str());
    let (optional, required): (Vec<&str>, Vec<&str>) = (names(true).collect(), names(false).collect());
    let needed_by = needed_by(plan, &optional, &required);
    let is_left_out = |place: &usize| optional.get(*place).is_some_and(|package| left_out.contains_key(*package));
    let is_held = |package: &&String| {
        let is_requested = optional.contains(&package.as_str());
        !is_requested && needed_by.get(package.as_str()).is_some_and(|places| places.iter().all(is_left_out))
    };
    let refused = refusals.iter().filter(|it| it.excludes.is_none()).flat_map(|it| &it.packages);
    refused.filter(is_held).cloned().collect()
}

/// All refusals in one text, with at most 20 of them.
pub fn summary(refusals: &[Refusal]) -> String {
    let all: Vec<String> = refusals.iter().map(|refusal| refusal.message.clone()).collect();
    lines(&all, SUMMARY).join("; ")
}

/// The places in the list of the optional packages that need a member, for members that nothing else needs.
fn needed_by<'a>(plan: &'a Plan, optional: &[&'a str], required: &[&'a str]) -> BTreeMap<&'a str, Vec<usize>> {
    let members: BTreeMap<&str, &PlannedMember> = plan.set().map(|it| (it.package.as_str(), it)).collect();
    let mut needed_by: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, package) in optional.iter().enumerate() {
        for member in reached(&members, [*package]) {
            needed_by.entry(member).or_default().push(place);
        }
    }
    // A package that no optional package needs is required, and so are its dependencies.
    let others = members.keys().copied().filter(|package| !needed_by.contains_key(package));
    let required: Vec<&str> = others.chain(required.iter().copied()).collect();
    for member in reached(&members, required) {
        needed_by.remove(member);
    }
    needed_by
}

/// Members of the set, and all that they need.
fn reached<'a>(
    members: &BTreeMap<&'a str, &'a PlannedMember>,
    roots: impl IntoIterator<Item = &'a str>,
) -> BTreeSet<&'a str> {
    let member = |package: &str| members.get(package).copied();
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

    /// The packages that are left out when these are refused: `base` alone, or `left+right`, which exclude each other.
    fn left_out_for(members: &[&str], optional: &[&str], refused: &[&str]) -> Vec<String> {
        left_out_beside(&[], members, optional, refused)
    }

    /// As above, if other packages are required.
    fn left_out_beside(required: &[&str], members: &[&str], optional: &[&str], refused: &[&str]) -> Vec<String> {
        let refusal = |text: &&str| {
            let packages = text.split('+').map(str::to_owned).collect();
            Refusal { packages, message: format!("{text}: no"), excludes: None }
        };
        let refusals: Vec<Refusal> = refused.iter().map(refusal).collect();
        let request = |name: &&str, optional: bool| {
            let name = (*name).to_owned();
            PackageRequest { name, optional, ..PackageRequest::default() }
        };
        let optional = optional.iter().map(|name| request(name, true));
        let requests: Vec<PackageRequest> = required.iter().map(|name| request(name, false)).chain(optional).collect();
        let left_out = left_out(&refusals, &plan(members), &requests);
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
    fn what_only_left_out_packages_need_is_held() {
        let plan = plan(&["app: base", "base", "other: shared", "shared", "web: app"]);
        let request =
            |name: &str, optional| PackageRequest { name: name.to_owned(), optional, ..PackageRequest::default() };
        let refusal = |package: &str| Refusal { packages: vec![package.to_owned()], ..Refusal::default() };
        let held_for = |requests: &[PackageRequest]| {
            let refusals = ["base", "shared", "web"].map(refusal);
            held(&refusals, &plan, requests, &left_out(&refusals, &plan, requests))
        };
        let optional = ["app", "web"].map(|name| request(name, true));
        assert_eq!(
            held_for(&[&optional[..], &[request("other", false)]].concat()),
            BTreeSet::from(["base".to_owned()])
        );
        assert_eq!(held_for(&[&optional[..], &[request("base", false)]].concat()), BTreeSet::new(), "it is required");
        assert_eq!(held_for(&[]), BTreeSet::new());
    }

    #[test]
    fn what_is_required_cannot_be_left_out() {
        let members = ["app: base", "base", "other: base"];
        assert!(left_out_for(&members, &["app"], &["base"]).is_empty(), "other needs it");
        assert!(left_out_for(&members, &["app"], &["other"]).is_empty());
        assert!(left_out_for(&members, &[], &["app", "base"]).is_empty());
        assert!(left_out_for(&members, &["app"], &["unknown"]).is_empty());
        assert_eq!(left_out_for(&members, &["app"], &["other", "app"]), ["app for app: no"]);
        let beside = left_out_beside(&["base"], &["app: base", "base"], &["app"], &["base"]);
        assert!(beside.is_empty(), "base is required, whatever else needs it");
    }

    #[test]
    fn of_those_that_exclude_each_other_the_first_of_the_list_stays() {
        let members = ["a", "b", "c: d", "d", "e"];
        assert_eq!(left_out_for(&members, &["b", "a", "c", "e"], &["a+b"]), ["a for a+b: no"]);
        assert_eq!(left_out_for(&members, &["a", "c"], &["a+e"]), ["a for a+e: no"]);
        assert_eq!(left_out_for(&members, &["a", "c"], &["a+d+e"]), ["a for a+d+e: no", "c for a+d+e: no"]);
        assert!(left_out_for(&members, &["a", "c"], &["b+e"]).is_empty(), "both are required");
        let alone = left_out_for(&members, &["a", "b", "c", "e"], &["a+b", "b+e", "a"]);
        assert_eq!(alone, ["a for a: no", "e for b+e: no"], "without the one that is refused, the other one stays");
    }

    #[test]
    fn a_bundle_that_is_not_possible_here_is_excluded_and_its_package_is_not_left_out() {
        let mut plan = plan(&["app: base", "base"]);
        plan.members[1].bundle = "base.v2".to_owned();
        let refusal = |packages: &[&str], excludes: Option<&str>| {
            let packages = packages.iter().map(|it| (*it).to_owned()).collect();
            Refusal { packages, message: "no".to_owned(), excludes: excludes.map(str::to_owned) }
        };
        let refusals =
            [refusal(&["base"], Some("too old")), refusal(&["app"], None), refusal(&["gone"], Some("too old"))];
        let why = "too old".to_owned();
        let base = Excluded { package: "base".to_owned(), bundle: "base.v2".to_owned(), why };
        assert_eq!(excluded(&refusals, &plan), [base]);
        let request = PackageRequest { name: "app".to_owned(), optional: true, ..PackageRequest::default() };
        assert!(left_out(&refusals[..1], &plan, std::slice::from_ref(&request)).is_empty());
        assert_eq!(left_out(&refusals, &plan, &[request]).len(), 1);
    }

    #[test]
    fn members_that_need_each_other_end_the_search() {
        assert_eq!(left_out_for(&["a: b", "b: a"], &["a"], &["b"]), ["a for b: no"]);
    }
}
