//! A case, its marks, and how it becomes a test.

use std::{
    any::Any,
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt as _, future::BoxFuture};
use libtest_mimic::{Completion, Failed, Trial};

use super::{Scope, server::Run};

/// How long a case may take. Generous: only failing cases take that long.
const PATIENCE: Duration = Duration::from_mins(3);

/// How long a case may take that is known to fail: some fail with a timeout.
const PATIENCE_WITH_DIFFERENCES: Duration = Duration::from_secs(5);

/// A behaviour that every API server must have.
pub(crate) struct Case {
    file: &'static str,
    section: &'static str,
    name: &'static str,
    run: for<'a> fn(&'a Scope) -> BoxFuture<'a, ()>,
    needs_controllers: bool,
    needs_kubectl: bool,
    differs: Option<&'static str>,
}

impl Case {
    pub(crate) fn new(
        module: &'static str,
        section: &'static str,
        name: &'static str,
        run: for<'a> fn(&'a Scope) -> BoxFuture<'a, ()>,
    ) -> Self {
        let file = module.split_once("::").map_or(module, |(_, path)| path);
        Self { file, section, name, run, needs_controllers: false, needs_kubectl: false, differs: None }
    }

    /// It needs garbage collection or the namespace controller: skipped where no controller manager runs.
    pub(crate) fn controllers(self) -> Self {
        Self { needs_controllers: true, ..self }
    }

    /// It runs kubectl: skipped if there is none.
    pub(crate) fn kubectl(self) -> Self {
        Self { needs_kubectl: true, ..self }
    }

    /// The embedded control plane is known to behave differently, see its `DIFFERENCES.md`; there the case must fail.
    pub(crate) fn differs(self, why: &'static str) -> Self {
        Self { differs: Some(why), ..self }
    }

    /// The test: `file::section::name`, so that a section or a file can be run alone.
    pub(crate) fn into_trial(self, run: &Arc<Run>) -> Trial {
        let run = Arc::clone(run);
        let name = format!("{}::{}::{}", self.file, self.section, self.name);
        Trial::ignorable_test(name, move || self.execute(&run))
    }

    fn execute(&self, run: &Arc<Run>) -> Result<Completion, Failed> {
        let server = run.server();
        if self.needs_controllers && !server.has_controllers() {
            return Ok(Completion::ignored_with("no controller manager runs on this server"));
        }
        if self.needs_kubectl && !chandler_test_support::needs::kubectl() {
            return Ok(Completion::ignored_with("there is no kubectl on the PATH"));
        }
        let difference = self.differs.filter(|_| server.is_embedded());
        let patience = if difference.is_some() { PATIENCE_WITH_DIFFERENCES } else { PATIENCE };
        let outcome = run.runtime().block_on(async {
            let scope = Scope::new(Arc::clone(&server));
            let running = AssertUnwindSafe(tokio::time::timeout(patience, (self.run)(&scope))).catch_unwind();
            let outcome = match running.await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(_)) => Err(format!("not finished after {patience:?}")),
                Err(panicked) => Err(message_of(panicked.as_ref())),
            };
            scope.clean_up().await;
            outcome
        });
        match (outcome, difference) {
            (Ok(()), None) => Ok(Completion::Completed),
            (Err(message), None) => Err(message.into()),
            (Err(_), Some(why)) => Ok(Completion::ignored_with(format!("known difference: {why}"))),
            (Ok(()), Some(why)) => Err(format!(
                "the embedded control plane does this now: remove the mark `differs` and the line in DIFFERENCES.md ({why})"
            )
            .into()),
        }
    }
}

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Stores the message and place of a panic for the report of its case, instead of printing it between other output.
pub(crate) fn keep_panics() {
    panic::set_hook(Box::new(|info| {
        let message = format!("{info}");
        LAST_PANIC.with_borrow_mut(|last| *last = Some(message));
    }));
}

fn message_of(panicked: &(dyn Any + Send)) -> String {
    let text = || panicked.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let kept = LAST_PANIC.with_borrow_mut(Option::take);
    kept.or_else(text).or_else(|| panicked.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panicked".to_owned())
}

/// Lists the cases of a file: `"section" function;` or `"section" function: mark, mark;`.
macro_rules! cases {
    ($($section:literal $name:ident $(: $($mark:ident $(($why:literal))?),+)?;)+) => {
        pub(crate) fn cases() -> Vec<$crate::support::Case> {
            vec![$(
                $crate::support::Case::new(module_path!(), $section, stringify!($name), |scope| Box::pin($name(scope)))
                    $($(.$mark($($why)?))+)?
            ),+]
        }
    };
}
pub(crate) use cases;
