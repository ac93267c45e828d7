//! Properties that hold for all generated inputs.

mod applying;
mod collecting;
mod reading;

use std::fmt::Debug;

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestCaseError, TestError, TestRunner},
};

use crate::support::Case;

pub(crate) fn cases() -> Vec<Case> {
    [applying::cases(), reading::cases(), collecting::cases()].into_iter().flatten().collect()
}

/// Checks a property on some generated inputs, and reports the simplest failing one.
async fn holds<S, F>(tries: u32, strategy: S, property: impl Fn(S::Value) -> F)
where
    S: Strategy,
    S::Value: Debug,
    F: Future<Output = ()>,
{
    let config = Config { cases: tries, max_shrink_iters: 64, failure_persistence: None, ..Config::default() };
    let handle = tokio::runtime::Handle::current();
    let outcome = tokio::task::block_in_place(|| {
        TestRunner::new(config).run(&strategy, |input| {
            handle.block_on(property(input));
            Ok::<(), TestCaseError>(())
        })
    });
    if let Err(TestError::Fail(reason, input)) = outcome {
        panic!("{reason}, with the input {input:#?}");
    }
}
