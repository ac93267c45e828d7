//! The permissions that the ServiceAccount of an owner lacks, or the user of a kubeconfig in another cluster, reviewed before the first write
//! and when a request was forbidden.
//!
//! One SelfSubjectRulesReview returns the rules of the account for the whole cluster and, where these do not suffice, one for each
//! namespace those that apply there. With RBAC they are complete. With an authorizer that cannot list its rules (a webhook) they
//! are incomplete; then SelfSubjectAccessReviews check what seems to be missing. Whether roles may be written or bound depends on
//! RBAC rules alone, except for `escalate` and `bind`, which any authorizer may grant.
//!
//! Reviews are shared by all owners of an account for some seconds. A refusal never rests on a review that was made earlier, so
//! a permission that was granted counts at once.
//!
//! Another cluster may answer no reviews, or wrong ones. So its user lacks only what both kinds of reviews deny, and a review that fails decides
//! nothing: that cluster authorizes each request.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use chandler_core::Budget;
use chandler_permissions::{
    Account, Escalation, ExistingRoles, Held, Installation, Item, Listed, Missing, Need, Parent, PolicyRule,
    Requirements, ReviewedRules, RoleKey, Scope, Why, missing as missing_permissions, requirements,
    role::{GROUP, Role},
};
use futures::FutureExt as _;
use kube::api::ApiResource;
use serde_json::{Map, Value, json};

use crate::{
    client::{cluster::Cluster, concurrent::all, recent::Answer, recent_answers::RecentAnswers},
    compute::cpu,
    pure::{
        deletion_plan::DeletionPlan,
        desired::Desired,
        error::{ApiError, PermissionsMissing, RolloutError},
        member::Member,
        namespaces,
        owner::Owner,
        policy::CrdPolicy,
    },
    read::{discovery::Discovery, places},
};

/// The maximum number of access reviews in one check. Permissions beyond it count as granted: the API server decides in the
/// end.
const REVIEWS: usize = 200;

/// How many texts the rules of the user of a kubeconfig may have in one scope. Comparing a release with them takes this many steps for each of
/// its permissions.
const FOREIGN_RULES: usize = 5_000;
/// How many texts the rules of a ServiceAccount may have in one scope. Its writers may grant it roles with many names.
const RULES: usize = 20_000;
/// The most bytes of a rules review that are read.
const REVIEW_BYTES: usize = 2 << 20;

/// How many texts the roles outside of the release that it binds may have together. Further ones are not kept in memory.
const BOUND_ROLES: usize = 200_000;

/// The comparisons of a text with a rule up to which a review is made in place.
const IN_PLACE: usize = 50_000;

/// A review of the permissions of a ServiceAccount, or of the user of a kubeconfig.
#[derive(Clone, Copy)]
pub(crate) struct AccessReview<'a> {
    /// The client with the controller's rights.
    pub(crate) own: &'a Cluster,
    /// The client that impersonates the ServiceAccount, or has the kubeconfig.
    pub(crate) actor: &'a Cluster,
    pub(crate) discovery: &'a Discovery,
    /// The reviews of the last seconds.
    pub(crate) recent: &'a RecentAnswers,
    pub(crate) owner: &'a Owner,
    /// The ServiceAccount; `None` for the user of a kubeconfig.
    pub(crate) account: Option<&'a Account>,
    /// How Chandler is installed.
    pub(crate) installation: &'a Installation,
}

/// The objects to install and to remove.
#[derive(Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) parent: &'a Value,
    pub(crate) desired: &'a [Desired],
    pub(crate) unwanted: &'a DeletionPlan<Member>,
}

/// What the permissions of an account were reviewed for, in a rollout for which it lacks none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reviewed {
    /// They were not reviewed.
    #[default]
    No,
    /// For requests only. The API server checks each of them again.
    Requests,
    /// Also for objects that make Chandler act for their writer. No API server checks that, so each write needs a new review.
    Delegations,
}

/// The result of a review.
struct Review {
    missing: Missing,
    /// Whether answers of the last seconds were used.
    reused: bool,
    /// What the permissions are needed for.
    needed_for: Reviewed,
}

/// The rules of an account in every scope that matters.
struct HeldRules {
    held: Arc<Held>,
    /// Whether an authorizer could not list all of them, or they are too many to compare.
    incomplete: bool,
    /// Whether answers of the last seconds were used.
    reused: bool,
    /// What the account lacks beside these rules.
    missing: Missing,
}

impl AccessReview<'_> {
    /// Refuses a rollout for which the ServiceAccount, or the user of the kubeconfig, lacks permissions.
    pub(crate) async fn check(self, work: Work<'_>) -> Result<Reviewed, RolloutError> {
        let Review { missing, needed_for, .. } = match self.review_now(work).await {
            Err(error) if self.account.is_none() => {
                tracing::debug!(owner = %self.owner.name, %error, "another cluster does not review the permissions of the kubeconfig");
                return Ok(Reviewed::No);
            }
            reviewed => reviewed?,
        };
        if missing.is_empty() {
            return Ok(needed_for);
        }
        Err(RolloutError::PermissionsMissing(Box::new(PermissionsMissing {
            owner: self.owner.name.clone(),
            account: self.account.cloned(),
            missing,
            not_yet: match self.absent_namespaces(work.desired).await {
                // The other cluster did not say. The list of permissions is worth more than this.
                Err(_) if self.account.is_none() => BTreeSet::new(),
                absent => absent?,
            },
        })))
    }

    /// Reviews the permissions. If a review of the last seconds lacks any, another one decides.
    async fn review_now(self, work: Work<'_>) -> Result<Review, RolloutError> {
        let mut reviewed = self.review(work).await?;
        if let Some(account) = self.account.filter(|_| !reviewed.missing.is_empty() && reviewed.reused) {
            self.recent.forget_reviews(account);
            reviewed = self.review(work).await?;
        }
        if let Some(account) = self.account.filter(|_| !reviewed.missing.is_empty()) {
            self.recent.forget_reviews(account);
        }
        Ok(reviewed)
    }

    async fn review(self, work: Work<'_>) -> Result<Review, RolloutError> {
        let empty = Map::new();
        let items: Vec<Item<'_>> = work
            .desired
            .iter()
            .map(|desired| Item {
                key: &desired.key,
                plural: &desired.resource.plural,
                value: desired.value.as_object().unwrap_or(&empty),
            })
            .collect();
        let stale: Vec<Item<'_>> = work
            .unwanted
            .all()
            .map(|member| Item {
                key: &member.key,
                plural: &member.resource.plural,
                value: member.object.as_object().unwrap_or(&empty),
            })
            .collect();
        let listed = self.listed(work).await?;
        let existing = self.existing_roles(&items).await?;
        // Removing objects writes no owner reference, and objects in another cluster have none.
        let parent = (!items.is_empty() && self.account.is_some()).then_some(Parent {
            group: &self.owner.group,
            plural: &self.owner.plural,
            name: &self.owner.name,
        });
        let required = requirements(&items, &stale, &listed, parent, &existing);
        let mut required = match self.account {
            Some(account) => required.with_delegations(&items, self.installation, account),
            // The controller reads the namespaces with the kubeconfig, and watches nothing there.
            None => required.without_watches().with_namespaces(self.namespaces_read(work.desired)),
        };
        if self.owner.deletion.crds != CrdPolicy::WhileUnused {
            required = required.without_counting();
        }
        let needed_for = if required.delegates() { Reviewed::Delegations } else { Reviewed::Requests };
        let required = Arc::new(required);
        let HeldRules { held, incomplete, mut reused, mut missing } = self.held(&required).await?;
        if (incomplete || self.account.is_none()) && !missing.is_empty() {
            let waivers = compare(&required, &held, Escalation::Allow).await?;
            reused |= self.confirm(&mut missing, &waivers).await?;
        }
        if self.account.is_none() {
            // The user may be unable to read the roles, and still hold what they grant.
            missing.retain(|need| {
                !matches!(need.why, Why::Aggregates(_) | Why::GrantsTooMuch(_) | Why::UnknownRole { .. })
            });
        }
        if self.account.is_some() {
            // The controller read these roles with its own permissions.
            missing.conceal(&required);
        }
        Ok(Review { missing, reused, needed_for })
    }

    /// The namespaces that a rollout in another cluster reads: it creates nothing in one that neither exists nor is in the release.
    fn namespaces_read(self, desired: &[Desired]) -> BTreeSet<String> {
        namespaces::needed(self.owner, desired, desired.iter()).into_iter().map(str::to_owned).collect()
    }

    /// The places where members are listed.
    async fn listed(self, work: Work<'_>) -> Result<Vec<Listed>, RolloutError> {
        let places = places::of(self.discovery, self.owner, work.parent, work.desired).await?;
        let certain = places.into_iter().filter(|place| place.certain);
        Ok(certain
            .map(|place| Listed {
                scope: Scope::of(place.namespace.as_deref()),
                group: place.resource.group,
                plural: place.resource.plural,
            })
            .collect())
    }

    /// The roles that bindings of the release refer to, and all ClusterRoles if the release has an aggregated one.
    async fn existing_roles(self, items: &[Item<'_>]) -> Result<ExistingRoles, RolloutError> {
        let about = |error| RolloutError::Request { action: "read the roles that are bound".to_owned(), error };
        let mut existing = ExistingRoles::default();
        if Requirements::aggregates(items) {
            let roles = self.readable(self.own.list(&role_resource(true), None, "").await).map_err(about)?;
            for role in roles.unwrap_or_default() {
                let name = role.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
                existing.insert(RoleKey { namespace: None, name }, role);
            }
        }
        let left = &AtomicUsize::new(BOUND_ROLES);
        let reads = Requirements::references(items).into_iter().map(|key| {
            async move {
                let resource = role_resource(key.namespace.is_none());
                let role = self.own.get(&resource, key.namespace.as_deref(), &key.name).await?;
                let fits = |role: &Value| {
                    let texts = Role::read(role).rules.iter().map(PolicyRule::texts).fold(1, usize::saturating_add);
                    left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(texts)).is_ok()
                };
                Ok::<_, ApiError>(role.map(|role| (key, Some(role).filter(fits))))
            }
            .boxed()
        });
        for role in all(reads.collect()).await {
            match self.readable(role).map_err(about)?.flatten() {
                Some((key, Some(role))) => existing.insert(key, role),
                Some((key, None)) => existing.insert_large(key),
                None => {}
            }
        }
        Ok(existing)
    }

    /// What was read; `None` if the user of a kubeconfig may not read it. The controller may read what the check needs in its own cluster.
    fn readable<T>(self, read: Result<T, ApiError>) -> Result<Option<T>, ApiError> {
        match read {
            Err(ApiError::Forbidden(_)) if self.account.is_none() => Ok(None),
            read => read.map(Some),
        }
    }

    /// The rules of the account where they matter. Rules for the whole cluster apply in every namespace, so the namespaces are
    /// reviewed only for what those lack.
    async fn held(self, required: &Arc<Requirements>) -> Result<HeldRules, RolloutError> {
        let mut found =
            HeldRules { held: Arc::default(), incomplete: false, reused: false, missing: Missing::default() };
        self.review_scopes(&mut found, [Scope::Cluster]).await?;
        found.missing = compare(required, &found.held, Escalation::Hold).await?;
        if !found.missing.is_empty() {
            let namespaces = required.scopes().into_iter().filter(|scope| *scope != Scope::Cluster);
            self.review_scopes(&mut found, namespaces).await?;
            found.missing = compare(required, &found.held, Escalation::Hold).await?;
        }
        Ok(found)
    }

    /// Adds the rules of the account in these scopes.
    async fn review_scopes(
        self,
        found: &mut HeldRules,
        scopes: impl IntoIterator<Item = Scope>,
    ) -> Result<(), RolloutError> {
        let reviews = scopes.into_iter().map(|scope| {
            async move {
                let rules = self.rules(&scope).await?;
                Ok((scope, rules))
            }
            .boxed()
        });
        for review in all(reviews.collect()).await {
            let (scope, answer) = review.map_err(|error| self.cannot_act(error))?;
            let Some(Answer { value, reused }) = answer else { continue };
            found.incomplete |= value.incomplete;
            found.reused |= reused;
            let (rules, held) = (value.rules.clone(), Arc::make_mut(&mut found.held));
            match scope {
                Scope::Cluster => held.cluster = rules,
                Scope::Namespace(namespace) => drop(held.namespaces.insert(namespace, rules)),
            }
        }
        Ok(())
    }

    /// The rules of the account in one scope.
    async fn rules(self, scope: &Scope) -> Result<Option<Answer<Arc<ReviewedRules>>>, ApiError> {
        let ask = async {
            let request = ReviewedRules::request(scope);
            let status = self.actor.review_within("selfsubjectrulesreviews", &request, REVIEW_BYTES).await?;
            let rules = status.map(|status| ReviewedRules::of_status(&status));
            let limit = if self.account.is_some() { RULES } else { FOREIGN_RULES };
            Ok(Some(Arc::new(bounded(rules, limit))))
        };
        match self.account {
            Some(account) => self.recent.rules.get(&(account.clone(), scope.clone()), ask).await,
            // The cluster is not trusted, so that its answer is not kept.
            None => Ok(ask.await?.map(|value| Answer { value, reused: false })),
        }
    }

    /// Removes the permissions that the API server grants after all. Returns whether reviews of the last seconds were used.
    async fn confirm(self, lacking: &mut Missing, waivers: &Missing) -> Result<bool, RolloutError> {
        let passes = |need: &Need| match &need.why {
            Why::Grants(object)
            | Why::GrantsTooMuch(object)
            | Why::Aggregates(object)
            | Why::UnknownRole { binding: object, .. } => Some(object.clone()),
            _ => None,
        };
        let mut reused = self.confirm_delegations(lacking).await?;
        let requests: BTreeSet<AccessQuery> = lacking
            .needs()
            .iter()
            .filter(|need| passes(need).is_none() && !delegates(need))
            .filter_map(AccessQuery::of)
            .collect();
        let escalations: BTreeSet<AccessQuery> =
            waivers.needs().iter().filter(|need| passes(need).is_some()).filter_map(AccessQuery::of).collect();
        // A permission for all names need not be reviewed for each name.
        let general: BTreeSet<AccessQuery> =
            requests.iter().map(AccessQuery::for_all_names).chain(escalations).collect();
        let Answer { value: mut allowed, reused: again } = self.ask(general.iter(), REVIEWS).await?;
        reused |= again;
        let single = requests
            .iter()
            .filter(|query| !query.name.is_empty() && allowed.get(&query.for_all_names()) == Some(&false));
        let Answer { value: answers, reused: again } = self.ask(single, REVIEWS.saturating_sub(allowed.len())).await?;
        reused |= again;
        allowed.extend(answers);
        let is_allowed = |query: Option<AccessQuery>| {
            let Some(query) = query else { return false };
            let all = allowed.get(&query.for_all_names()).copied();
            all == Some(true) || allowed.get(&query).copied().unwrap_or(true)
        };
        let waived: BTreeSet<_> =
            waivers.needs().iter().filter(|need| is_allowed(AccessQuery::of(need))).filter_map(passes).collect();
        lacking.retain(|need| match passes(need) {
            Some(object) => !waived.contains(&object),
            None => delegates(need) || !is_allowed(AccessQuery::of(need)),
        });
        Ok(reused)
    }

    /// Removes the permissions for actions of Chandler on behalf of the account. The API server does not check any of these
    /// itself, so a permission that was not reviewed is not granted.
    async fn confirm_delegations(self, lacking: &mut Missing) -> Result<bool, RolloutError> {
        let queries: BTreeSet<AccessQuery> =
            lacking.needs().iter().filter(|need| delegates(need)).filter_map(AccessQuery::of).collect();
        let Answer { value: answers, reused } = self.ask(queries.iter(), REVIEWS).await?;
        let is_allowed = |need: &Need| {
            AccessQuery::of(need).is_some_and(|query| answers.get(&query).is_some_and(|allowed| *allowed))
        };
        lacking.retain(|need| !(delegates(need) && is_allowed(need)));
        Ok(reused)
    }

    /// Reviews these permissions, up to a limit.
    async fn ask(
        self,
        queries: impl Iterator<Item = &AccessQuery>,
        limit: usize,
    ) -> Result<Answer<BTreeMap<AccessQuery, bool>>, RolloutError> {
        let reviews = queries.take(limit).cloned().map(|query| {
            async move {
                let answer = self.allowed(&query).await?;
                Ok((query, answer))
            }
            .boxed()
        });
        let mut answers = Answer { value: BTreeMap::new(), reused: false };
        for review in all(reviews.collect()).await {
            let (query, answer) = review.map_err(|error| self.cannot_act(error))?;
            answers.reused |= answer.is_some_and(|answer| answer.reused);
            answers.value.insert(query, answer.is_some_and(|answer| answer.value));
        }
        Ok(answers)
    }

    async fn allowed(self, query: &AccessQuery) -> Result<Option<Answer<bool>>, ApiError> {
        let attributes = query.attributes();
        let ask = async {
            let review = review("SelfSubjectAccessReview", &json!({"resourceAttributes": attributes}));
            let status = self.actor.review("selfsubjectaccessreviews", &review).await?;
            Ok(Some(status.get("allowed").and_then(Value::as_bool).unwrap_or_default()))
        };
        match self.account {
            Some(account) => self.recent.access.get(&(account.clone(), attributes.to_string()), ask).await,
            None => Ok(ask.await?.map(|value| Answer { value, reused: false })),
        }
    }

    /// Every user may review their own permissions, so a refusal means that the controller may not impersonate the account.
    fn cannot_act(self, error: ApiError) -> RolloutError {
        let action = match self.account {
            Some(account) => format!("act as ServiceAccount {account}"),
            None => "review the permissions of the kubeconfig".to_owned(),
        };
        RolloutError::Request { action, error }
    }

    /// The namespaces of the release that do not exist.
    async fn absent_namespaces(self, desired: &[Desired]) -> Result<BTreeSet<String>, RolloutError> {
        let mut absent = BTreeSet::new();
        for desired in namespaces::own(desired) {
            let name = &desired.key.name;
            let found = self.readable(self.own.get(&desired.resource, None, name).await);
            let found =
                found.map_err(|error| RolloutError::Request { action: format!("read namespace {name}"), error })?;
            if found == Some(None) {
                absent.insert(name.clone());
            }
        }
        Ok(absent)
    }
}

/// What an account with these rules lacks. Large comparisons run on a thread of their own.
async fn compare(
    required: &Arc<Requirements>,
    held: &Arc<Held>,
    escalation: Escalation,
) -> Result<Missing, RolloutError> {
    let rules = held.cluster.len() + held.namespaces.values().map(Vec::len).sum::<usize>();
    if required.steps().saturating_mul(rules.max(1)) <= IN_PLACE {
        return Ok(missing_permissions(required, held, escalation));
    }
    let (required, held) = (Arc::clone(required), Arc::clone(held));
    // The comparison is bounded on its own.
    let compared = cpu::run(&Budget::new(u64::MAX), move || missing_permissions(&required, &held, escalation)).await;
    compared.map_err(|_| RolloutError::Cancelled)
}

/// These rules, unless they are so many that access reviews are cheaper.
fn bounded(rules: Option<ReviewedRules>, limit: usize) -> ReviewedRules {
    let fits = |rules: &ReviewedRules| rules.texts() <= limit;
    rules.filter(fits).unwrap_or_else(|| ReviewedRules { rules: Vec::new(), incomplete: true })
}

/// Whether a permission is needed because an object makes Chandler act on behalf of the account.
fn delegates(need: &Need) -> bool {
    matches!(need.why, Why::Delegates { .. })
}

/// The attributes of an access review.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AccessQuery {
    namespace: String,
    verb: String,
    group: String,
    resource: String,
    name: String,
}

impl AccessQuery {
    /// The query for a needed permission; none for paths, which only rules grant.
    fn of(need: &Need) -> Option<Self> {
        let PolicyRule { verbs, api_groups, resources, resource_names, .. } = &need.rule;
        Some(Self {
            namespace: need.scope.namespace().unwrap_or_default().to_owned(),
            verb: verbs.first()?.clone(),
            group: api_groups.first()?.clone(),
            resource: resources.first()?.clone(),
            name: resource_names.first().cloned().unwrap_or_default(),
        })
    }

    fn for_all_names(&self) -> Self {
        Self { name: String::new(), ..self.clone() }
    }

    fn attributes(&self) -> Value {
        let (resource, subresource) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        json!({
            "namespace": self.namespace, "verb": self.verb, "group": self.group, "resource": resource,
            "subresource": subresource, "name": self.name,
        })
    }
}

fn review(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec})
}

fn role_resource(cluster: bool) -> ApiResource {
    let (kind, plural) = if cluster { ("ClusterRole", "clusterroles") } else { ("Role", "roles") };
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{GROUP}/v1"),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

#[cfg(test)]
mod tests;
