//! Which release is to run: what the spec describes or names, or, while that waits or after it failed, an earlier one.

use std::sync::Arc;

use chandler_api::{ApprovedChange, Outcome, ProvisionerInUse, Revision};
use chandler_core::{Digest, Release};
use chandler_records::{Book, RecordError};
use chandler_rollout::{Owner, Preview, RolloutRequest};
use kube::ResourceExt as _;

use super::{
    Pass, approval,
    assessment::{Assessment, Reached, ReleaseFacts, Unpacked},
    certificates, drift, gates,
    owner::owner,
    preparing,
    rerender::Remade,
    revisions::{self, Candidate, Cause, Config},
};
use crate::{context::Context, problem::Problem, provisioner_class::Class};

/// The release that is to run: that of a revision that the spec names, or the one that the spec describes, or, where that one
/// failed, the last one that succeeded.
pub(super) async fn choose(pass: Pass<'_>, found: &mut Assessment) -> Result<Arc<Release>, Reached> {
    let Pass { deployment, context, .. } = pass;
    if let Some(pinned) = revisions::pinned(deployment) {
        let revision = pinned.map_err(Reached::NotRendered)?;
        let release = again(pass, revision, Cause::Pinned(revision.number), found).await;
        found.unpacked = revision
            .content_digest
            .parse()
            .ok()
            .map(|content_digest| Unpacked { resolved_source: revision.source.clone(), content_digest });
        return release.map_err(|problem| {
            if problem.is_being_prepared() { Reached::Preparing } else { Reached::NotRendered(problem) }
        });
    }
    let rendered = preparing::described(pass, found).await?;
    let release = rendered.release;
    let namespace = &deployment.spec.install_namespace;
    let Some((failed, good)) = revisions::way_back(deployment, release.digest().as_str(), namespace) else {
        context.memory.in_use.keep_only(&deployment.name_any(), &rendered.made);
        return Ok(release);
    };
    let cause = Cause::Failed {
        failed: failed.number,
        message: failed.message.clone().unwrap_or_default(),
        to: good.rollback_to.unwrap_or(good.number),
    };
    match again(pass, good, cause, found).await {
        Ok(release) => Ok(release),
        Err(problem) if problem.is_being_prepared() => Err(Reached::Preparing),
        // What failed goes on being tried: that is better than nothing.
        Err(problem) => {
            found.no_way_back = Some(problem);
            Ok(release)
        }
    }
}

/// The release that may run: the one that was chosen or, while that waits for approval, the one that runs. What cannot be
/// previewed cannot be approved.
pub(super) async fn approved(
    pass: Pass<'_>,
    found: &mut Assessment,
    release: Arc<Release>,
) -> Result<Arc<Release>, Reached> {
    let Pass { deployment, context, .. } = pass;
    let Some(candidate) = found.candidate.clone().filter(|candidate| approval::is_needed(deployment, candidate)) else {
        return Ok(release);
    };
    let previewed = preview(pass, &candidate, Arc::clone(&release)).await.map_err(Reached::NotPreviewed)?;
    let change = approval::digest(deployment, &candidate, &previewed);
    if let Some(given) = context.approvals.of(deployment, &change) {
        found.candidate = Some(Candidate {
            approval: Some(ApprovedChange {
                change,
                approved_by: given.spec.approved_by,
                terms: Some(approval::terms(deployment)),
            }),
            ..candidate
        });
        return Ok(release);
    }
    found.pending = Some(approval::pending(&candidate, change, &previewed));
    let history = deployment.status.as_ref().map(|status| status.history.as_slice()).unwrap_or_default();
    let Some(current) = history.last().filter(|current| current.outcome == Outcome::Succeeded) else {
        return Err(Reached::NeedsApproval);
    };
    again(pass, current, Cause::Waiting(current.number), found).await.map_err(|problem| {
        tracing::debug!(deployment = %deployment.name_any(), problem = %problem.message, "left alone until approval");
        Reached::NeedsApproval
    })
}

/// What the candidate would change.
async fn preview(pass: Pass<'_>, candidate: &Candidate, release: Arc<Release>) -> Result<Preview, Problem> {
    let Pass { deployment, context, .. } = pass;
    let owner = owner_for(pass, Some(candidate))?;
    let completed = certificates::complete(deployment, &owner, release, context).await?;
    let rules = gates::rules(deployment);
    let drift = drift::policy_now(deployment);
    let previewed =
        context.rollout.preview(&RolloutRequest::new(&owner, &completed.release).rules(&rules).drift(drift)).await;
    previewed.map_err(|error| Problem::from(&error))
}

/// The owner of what a candidate installs, or of what the spec describes.
pub(super) fn owner_for(pass: Pass<'_>, candidate: Option<&Candidate>) -> Result<Owner, Problem> {
    let Pass { deployment, book, context, .. } = pass;
    let namespace = candidate.map_or(&deployment.spec.install_namespace, |candidate| &candidate.install_namespace);
    let back = candidate.is_some_and(|candidate| revisions::goes_back(deployment, candidate));
    let owner =
        owner(deployment, namespace, &context.options.accounts)?.rollback(back).ignoring(drift::ignored(deployment)?);
    Ok(owner.recorded_in(Arc::<Book>::clone(book)))
}

/// The release of an earlier revision: the one that is kept, else made again from what it was made from.
pub(super) async fn again(
    pass: Pass<'_>,
    revision: &Revision,
    cause: Cause,
    found: &mut Assessment,
) -> Result<Arc<Release>, Problem> {
    let Pass { deployment, book, context, .. } = pass;
    let (release, provisioner, config) = match kept(revision, book, context).await {
        Ok(Some(release)) => {
            let config = match &revision.config {
                Some(config) => Config::Known(config.clone()),
                None => Config::Digest(revision.config_digest.clone()),
            };
            (release, revision.provisioner.clone(), config)
        }
        kept => {
            if let Err(error) = kept {
                tracing::warn!(deployment = %deployment.name_any(), %error, "a kept release is made again");
            }
            let Remade { rendered, provisioner, config } = preparing::remade(pass, revision).await?;
            (rendered.release, provisioner, Config::Known(config))
        }
    };
    found.provisioner = Some(provisioner.clone());
    found.candidate = Some(Candidate {
        cause,
        source: revision.source.clone(),
        content_digest: revision.content_digest.clone(),
        provisioner,
        install_namespace: revision.install_namespace.clone(),
        config,
        release: release_facts(&release),
        approval: None,
    });
    Ok(release)
}

/// The release of a revision from the record; none where its bytes are not kept.
async fn kept(revision: &Revision, book: &Book, context: &Context) -> Result<Option<Arc<Release>>, RecordError> {
    let Ok(digest) = revision.release_digest.parse::<Digest>() else { return Ok(None) };
    if !book.keeps(&digest) {
        return Ok(None);
    }
    // What was made from other inputs is kept under another digest: this one stands for the release itself.
    let key = Digest::of(format!("release {digest}").as_bytes());
    if let Some(release) = context.releases.get(&key).await {
        return Ok(Some(release));
    }
    let Some(release) = book.release(&digest).await?.map(Arc::new) else { return Ok(None) };
    context.releases.insert(key, Arc::clone(&release)).await;
    Ok(Some(release))
}

pub(super) fn in_use(class_name: &str, class: &Class) -> ProvisionerInUse {
    let facts = class.provisioner.facts();
    ProvisionerInUse {
        class: class_name.to_owned(),
        name: Some(facts.name.clone()),
        version: Some(facts.version.clone()),
        digest: class.provisioner.digest().to_string(),
    }
}

pub(super) fn release_facts(release: &Release) -> ReleaseFacts {
    let mut stages: Vec<u32> = release.objects().iter().map(|object| object.stage).collect();
    stages.dedup();
    ReleaseFacts {
        digest: release.digest().clone(),
        objects: release.objects().len(),
        stages: stages.len().max(1),
        version: release.description().version.clone(),
    }
}
