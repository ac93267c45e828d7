use proptest::prelude::*;

use super::*;
use crate::faults::matching::Matcher;

#[test]
fn parsed_faults_equal_built_ones() {
    let cases = [
        ("conflict", Fault::new(Effect::Conflict)),
        (
            "latency=100ms..2s , verb=get+list",
            Fault::new(Effect::Latency { least: Duration::from_millis(100), most: Duration::from_secs(2) })
                .verb(Verb::Get)
                .verb(Verb::List),
        ),
        (
            "too-many-requests=5s,resource=deployments.apps,subresource=status,times=2",
            Fault::new(Effect::TooManyRequests { retry_after: Duration::from_secs(5) })
                .resource("deployments.apps")
                .subresource("status")
                .times(2),
        ),
        ("drop-watch=3,namespace=", Fault::new(Effect::DropWatch(When::Events(3))).namespace("")),
        ("expire-watch=10s", Fault::new(Effect::ExpireWatch(When::Time(Duration::from_secs(10))))),
        ("internal-error,probability=30%,seed=9", Fault::new(Effect::InternalError).probability(0.3).seed(9)),
        ("reset,client=a%2Cb*,group=", Fault::new(Effect::Reset).client("a,b*").group("")),
        ("conflict,method=put+PATCH", Fault::new(Effect::Conflict).method(Method::PUT).method(Method::PATCH)),
        ("conflict,group=apps,resource=deployments.apps", Fault::new(Effect::Conflict).resource("deployments.apps")),
        (
            "stale=4,dry-run=false,simulation=true",
            Fault::new(Effect::Stale { revisions: 4 }).dry_run(false).with_simulation(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<Fault>().as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn parse_errors_are_reported() {
    let error = |text: &str| text.parse::<Fault>().unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            "",
            "conflct",
            "teapot",
            "latency",
            "latency=2s..1s",
            "conflict=3",
            "drop-watch=soon",
            "conflict,verbs=patch",
            "conflict,verb=put",
            "conflict,times=x",
            "conflict,times",
            "conflict,every=0",
            "conflict,probability=1.5",
            "conflict,verb=get,verb=list",
            "conflict,resource=",
            "conflict,resource=deployments.apps,group=batch",
            "conflict,group=batch,resource=deployments.apps",
            "drop-watch,verb=get",
            "conflict,name=%ff",
        ]
        .map(|text| format!("{text}\n    {}", error(text)))
        .join("\n"),
        @r#"

        a fault is written EFFECT[=VALUE][,CONDITION=VALUE]..., such as `conflict,verb=patch,times=3`
    conflct
        "conflct" is not an effect: did you mean conflict?
    teapot
        "teapot" is not an effect: expected one of latency, conflict, gone, too-many-requests, internal-error, internal-error-after-write, unavailable, reset, reset-after-write, stale, drop-watch, reset-watch, expire-watch, slow-watch, late-bookmarks, no-bookmarks, established-delay
    latency
        latency: expected a time or a range, such as 200ms or 100ms..2s
    latency=2s..1s
        latency=2s..1s: expected a time or a range, such as 200ms or 100ms..2s
    conflict=3
        conflict=3: it takes no value
    drop-watch=soon
        drop-watch=soon: expected a number of events or a time, such as 3 or 10s
    conflict,verbs=patch
        "verbs" is not a condition: did you mean verb?
    conflict,verb=put
        verb=put: expected verbs of the Kubernetes API, joined by +; HTTP methods are named by method=
    conflict,times=x
        times=x: expected a whole number
    conflict,times
        times: expected a whole number
    conflict,every=0
        every=0: expected a whole number of at least 1
    conflict,probability=1.5
        probability=1.5: expected a number between 0 and 1, or a percentage such as 30%
    conflict,verb=get,verb=list
        verb is given twice
    conflict,resource=
        resource=: expected a resource, such as pods or deployments.apps
    conflict,resource=deployments.apps,group=batch
        group=batch: the resource already has a group
    conflict,group=batch,resource=deployments.apps
        resource=deployments.apps: another group is given, too
    drop-watch,verb=get
        drop-watch applies to requests with the verb watch, not get
    conflict,name=%ff
        name=%ff: expected percent-encoded UTF-8
    "#
    );
}

#[test]
fn every_effect_and_condition_that_is_documented_is_read() {
    for (name, value, _) in EFFECTS {
        let value = if value.starts_with("=N") {
            "=1"
        } else if value.starts_with("=T") {
            "=1s"
        } else {
            ""
        };
        let fault: Fault = format!("{name}{value}").parse().unwrap();
        assert!(fault.to_string().starts_with(name));
    }
    for (name, value, _) in CONDITIONS {
        let value = match *value {
            "=VERB[+VERB]" => "get",
            "=METHOD[+METHOD]" => "PUT",
            "=true|false" => "true",
            "=N" => "2",
            "=P" => "0.5",
            _ => "x",
        };
        let text = format!("conflict,{name}={value}");
        assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
    }
}

fn time() -> impl Strategy<Value = Duration> {
    let unit = prop::sample::select(vec![1_u64, 1_000, 1_000_000, 1_000_000_000, 60_000_000_000]);
    (0_u64..100_000, unit).prop_map(|(number, unit)| Duration::from_nanos(number * unit))
}

fn effect() -> impl Strategy<Value = Effect> {
    let when = || prop_oneof![(0_u64..9).prop_map(When::Events), time().prop_map(When::Time)];
    let plain = vec![
        Effect::Conflict,
        Effect::Gone,
        Effect::InternalError,
        Effect::InternalErrorAfterWrite,
        Effect::Unavailable,
        Effect::Reset,
        Effect::ResetAfterWrite,
        Effect::NoBookmarks,
    ];
    prop_oneof![
        prop::sample::select(plain),
        (time(), time()).prop_map(|(least, more)| Effect::Latency { least, most: least + more }),
        time().prop_map(|retry_after| Effect::TooManyRequests { retry_after }),
        any::<u64>().prop_map(|revisions| Effect::Stale { revisions }),
        when().prop_map(Effect::DropWatch),
        when().prop_map(Effect::ResetWatch),
        when().prop_map(Effect::ExpireWatch),
        time().prop_map(|delay| Effect::SlowWatch { delay }),
        time().prop_map(|delay| Effect::LateBookmarks { delay }),
        time().prop_map(|delay| Effect::EstablishedDelay { delay }),
    ]
}

fn matcher() -> impl Strategy<Value = Matcher> {
    let text = || prop::option::of(".{0,8}");
    let methods = prop::sample::subsequence(vec![Method::GET, Method::PUT, Method::PATCH], 0..=2);
    // A dot in a resource's name belongs to the group.
    let resource = prop::option::of("[^.]{1,8}");
    let about = (text(), resource, text(), text(), text(), text(), text());
    (methods, about, prop::option::of(any::<bool>()), any::<bool>()).prop_map(
        |(methods, about, dry_run, simulation)| {
            let (group, resource, subresource, namespace, name, client, path) = about;
            let manager = name.clone();
            let verbs = Vec::new();
            Matcher {
                verbs,
                methods,
                path,
                group,
                resource,
                subresource,
                namespace,
                name,
                client,
                manager,
                dry_run,
                simulation,
            }
        },
    )
}

fn fault() -> impl Strategy<Value = Fault> {
    let counts = (any::<u64>(), 1..u64::MAX, prop::option::of(any::<u64>()), any::<u64>());
    let verbs = prop::sample::subsequence(Verb::ALL.to_vec(), 0..=3);
    (effect(), matcher(), verbs, counts, 0.0..=1.0).prop_map(|(effect, mut matcher, mut verbs, counts, probability)| {
        verbs.retain(|verb| effect.verbs().is_none_or(|possible| possible.contains(verb)));
        matcher.verbs = verbs;
        let (after, every, times, seed) = counts;
        Fault { effect, matcher, after, every, times, probability, seed }
    })
}

proptest! {
    #[test]
    fn displayed_faults_round_trip(fault in fault()) {
        let text = fault.to_string();
        prop_assert_eq!(text.parse::<Fault>(), Ok(fault), "{}", text);
    }

    #[test]
    fn no_text_is_too_much(text in "[a-z=,.%+0-9 -]{0,60}|.{0,30}") {
        if let Ok(fault) = text.parse::<Fault>() {
            prop_assert_eq!(fault.to_string().parse::<Fault>(), Ok(fault));
        }
    }
}
