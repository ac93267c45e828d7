//! `chandler test`.

use std::time::{Duration, Instant};

use chandler_api::BundleDeployment;
use chandler_rollout::impersonating;
use k8s_openapi::{
    api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec},
    jiff::Timestamp,
};
use kube::{Api, Client, api::PostParams};

use crate::{
    CommandError,
    arguments::{
        bundle::FetchArguments, connection::Connection, dry_run::DryRun, format::DataFormat,
        system_namespace::SystemNamespaceArguments, target::DEPLOYMENTS, values,
    },
    read::{
        cluster,
        test_hooks::{self, TestHook},
    },
    signals,
    view::{
        output, permissions,
        progress::{Progress, seconds},
        terminal::Terminal,
        test_report::{TestOutcome, TestReport, TestResult},
        text::{count, one_line},
    },
    write::{
        deployment::Effect,
        test_run::{TestRun, result},
    },
};

/// How long the clean-up of an interrupted run may take.
const CLEAN_UP: Duration = Duration::from_secs(30);
/// How long the logs of a test may take that has not ended in time.
const LAST_LOGS: Duration = Duration::from_secs(10);

/// Run the tests of an installed Helm chart
///
/// Renders the tests of the release that is installed (the hooks `test` of its chart), creates them in its namespace one after the other, waits until each
/// Pod or Job has ended, and prints the results with the ends of the logs. All tests run, also after one has failed.
///
/// With spec.serviceAccount, the tests are created with the permissions of this ServiceAccount if you may impersonate it, and otherwise, as without one, with
/// yours. A test can be a Pod or Job in the namespace of the bundle, with ConfigMaps, Secrets, Services, ServiceAccounts and PersistentVolumeClaims;
/// others are refused.
///
/// Objects are deleted as their annotation helm.sh/hook-delete-policy says, and before the next run at the latest. Ctrl-C and the end of --timeout delete what
/// has not ended.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Output:
  The results with the ends of the logs on standard output, each when its test has ended; with
  -o json, every field. Progress and a summary on standard error.

Exit codes: 0 all tests succeeded, or there are none; 1 a test failed; 2 wrong usage; 3 a test had
  not ended before the timeout; 7 not found; 8 refused; 130 interrupted

Examples:
  chandler test web
  With more time:
    chandler test web --timeout 20m
  Show what would be created:
    chandler test web --dry-run
  The names of the tests that failed:
    chandler test web -o json | jq -r '.tests[] | select(.outcome != \"Succeeded\") | .object'")]
pub struct Test {
    /// Name of the BundleDeployment
    #[arg(value_name = "NAME", value_parser = DEPLOYMENTS.name())]
    pub name: String,

    /// Timeout for all tests together
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = values::duration)]
    pub timeout: Duration,

    /// Create the tests with your permissions, although the BundleDeployment has a ServiceAccount that you may impersonate
    #[arg(long)]
    pub own_permissions: bool,

    /// Whether anything is written.
    #[command(flatten)]
    pub dry_run: DryRun,

    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = DataFormat::Text)]
    pub output: DataFormat,

    /// The bundle's files [default: the files of the installed revision]
    #[arg(long, value_name = "BUNDLE")]
    pub bundle: Option<String>,

    /// Where the bundle is fetched from and unpacked.
    #[command(flatten)]
    pub fetch: FetchArguments,

    /// Where files in ConfigMaps are.
    #[command(flatten)]
    pub system: SystemNamespaceArguments,

    /// How the command connects to the cluster.
    #[command(flatten)]
    pub connection: Connection,
}

impl Test {
    /// Runs the tests, and prints the results.
    pub async fn run(&self, terminal: &Terminal) -> Result<(), CommandError> {
        let client = cluster::client(&self.connection.options()).await?;
        let deployment = cluster::deployment(&client, &self.name).await?;
        self.refuse(&deployment)?;
        let options = self.fetch.of_deployment();
        let system_namespace = &self.system.system_namespace;
        let hooks =
            test_hooks::of_installed(&client, system_namespace, &options, &deployment, self.bundle.as_deref()).await?;
        let namespace = deployment.spec.install_namespace.clone();
        let mut report = TestReport { name: self.name.clone(), namespace, tests: Vec::new() };
        let writer = self.writer(&client, &deployment, terminal).await?;
        let id = format!("{}-{}", Timestamp::now().as_nanosecond(), std::process::id());
        let run = TestRun { client: &client, writer: &writer, deployment: &self.name, id };
        run.check(&hooks).await?;
        let ended = Box::pin(self.carry_out(&run, &hooks, &mut report, terminal)).await;
        if self.output != DataFormat::Text {
            output::print(&output::data(&report, self.output, String::new)?)?;
        }
        ended?;
        self.summary(&report, &hooks, terminal)
    }

    /// Refuses a BundleDeployment whose tests would run at the wrong place.
    fn refuse(&self, deployment: &BundleDeployment) -> Result<(), CommandError> {
        let name = &self.name;
        if deployment.spec.kube_config.is_some() {
            return Err(CommandError::refused(format!(
                "BundleDeployment {name} is installed into another cluster (spec.kubeConfig), and tests would run in this one"
            )));
        }
        if deployment.spec.install_namespace == self.system.system_namespace {
            return Err(CommandError::refused(format!(
                "BundleDeployment {name} is installed into the namespace of the controller, where no tests run: a Pod there could use the \
                 controller's account"
            )));
        }
        Ok(())
    }

    /// The client that creates the tests: as the ServiceAccount of the BundleDeployment, if the user may impersonate it.
    async fn writer(
        &self,
        client: &Client,
        deployment: &BundleDeployment,
        terminal: &Terminal,
    ) -> Result<Client, CommandError> {
        let Some(account) = permissions::account_of(deployment).filter(|_| !self.own_permissions) else {
            return Ok(client.clone());
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    namespace: Some(account.namespace.clone()),
                    name: Some(account.name.clone()),
                    resource: Some("serviceaccounts".to_owned()),
                    verb: Some("impersonate".to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let review = reviews.create(&PostParams::default(), &review).await.map_err(|error| {
            CommandError::failed(format!("failed to ask whether you may impersonate ServiceAccount {account}"))
                .because(&error)
        })?;
        if !review.status.is_some_and(|status| status.allowed) {
            terminal.line(format!(
                "you may not impersonate ServiceAccount {account}: the tests are created with your permissions"
            ));
            return Ok(client.clone());
        }
        terminal.line(format!("the tests are created with the permissions of ServiceAccount {account}"));
        impersonating(client, &account).map_err(|error| {
            CommandError::failed(format!("failed to impersonate ServiceAccount {account}")).because(&error)
        })
    }

    /// Runs the tests, and cleans up whatever happens.
    async fn carry_out(
        &self,
        run: &TestRun<'_>,
        hooks: &[TestHook],
        report: &mut TestReport,
        terminal: &Terminal,
    ) -> Result<(), CommandError> {
        let effect = self.dry_run.effect();
        let mut progress = Progress::new(terminal);
        // Objects that may exist, and whose fate is not decided yet, and when the last one began. A dry run creates none.
        let mut open: Vec<&TestHook> = Vec::new();
        let mut began = Instant::now();
        let work = async {
            for hook in hooks {
                began = Instant::now();
                if effect == Effect::Check {
                    run.create(hook, effect).await?;
                    report.tests.extend(hook.runs().then(|| result(hook, (TestOutcome::NotRun, None), began)));
                    continue;
                }
                open.push(hook);
                run.create(hook, effect).await?;
                if !hook.runs() {
                    continue;
                }
                let ended = run.ended(hook, &mut progress).await?;
                let is_success = ended.0 == TestOutcome::Succeeded;
                let mut test = result(hook, ended, began);
                test.logs = run.logs(hook).await;
                let is_left = !is_deleted(hook, is_success);
                if is_left {
                    open.pop();
                }
                self.show(&test)?;
                report.tests.push(test);
                // Until it is deleted it stays in the list, so that an interrupted run deletes it, or says that it may remain.
                if !is_left {
                    run.discard(hook).await?;
                    open.pop();
                }
            }
            Ok::<(), CommandError>(())
        };
        let done = signals::unless_interrupted(tokio::time::timeout(self.timeout, work)).await;
        progress.finish();
        let ended = match done {
            Some(Ok(Ok(()))) => {
                let is_success = report.tests.iter().all(|test| test.outcome == TestOutcome::Succeeded);
                open.retain(|hook| is_deleted(hook, is_success));
                Ok(())
            }
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) => {
                // A test with a result has ended, and was being deleted.
                let is_reported = |hook: &TestHook| {
                    report.tests.iter().any(|test| test.kind == hook.key.kind && test.object == hook.key.name)
                };
                let running = open.last().copied().filter(|hook| hook.runs() && !is_reported(hook));
                let mut shown = Ok(());
                if let Some(hook) = running {
                    let mut late = result(hook, (TestOutcome::TimedOut, None), began);
                    late.logs = tokio::time::timeout(LAST_LOGS, run.logs(hook)).await.unwrap_or_default();
                    shown = self.show(&late);
                    report.tests.push(late);
                }
                shown.and(Err(self.late()))
            }
            None => Err(CommandError::interrupted()),
        };
        clean_up(run, &open, terminal).await;
        ended
    }

    fn late(&self) -> CommandError {
        CommandError::timeout(format!("the tests of {} did not end within {}", self.name, seconds(self.timeout)))
            .hint("--timeout gives them more time")
    }

    fn show(&self, result: &TestResult) -> Result<(), CommandError> {
        if self.output == DataFormat::Text { output::show(&result.text()) } else { Ok(()) }
    }

    /// Says how the tests ended.
    fn summary(&self, report: &TestReport, hooks: &[TestHook], terminal: &Terminal) -> Result<(), CommandError> {
        let name = &self.name;
        let all = count(report.tests.len(), "test");
        if hooks.is_empty() {
            terminal.line(format!("the bundle of {name} has no tests"));
            return Ok(());
        }
        if self.dry_run.dry_run {
            for hook in hooks {
                terminal.line(format!("+ create {}", one_line(&hook.key.to_string())));
            }
            terminal.line(format!("would run {all} of {name}; nothing was changed"));
            return Ok(());
        }
        let failed = report.tests.len() - report.count(TestOutcome::Succeeded);
        if failed > 0 {
            return Err(CommandError::failed(format!("{failed} of {all} of {name} failed")));
        }
        terminal.line(format!("{all} of {name} succeeded"));
        Ok(())
    }
}

/// Whether an object is deleted after its test, or all tests of a run.
fn is_deleted(hook: &TestHook, is_success: bool) -> bool {
    if is_success { hook.is_deleted_if_succeeded } else { hook.is_deleted_if_failed }
}

/// Deletes objects of a run. What remains is reported.
async fn clean_up(run: &TestRun<'_>, hooks: &[&TestHook], terminal: &Terminal) {
    for hook in hooks {
        let why = match tokio::time::timeout(CLEAN_UP, run.discard(hook)).await {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => error.explained(),
            Err(_) => "the API server does not answer".to_owned(),
        };
        terminal.line(format!("{} may remain: {why}", one_line(&hook.key.to_string())));
    }
}
