use super::*;

fn opinion(class: &str, priority: i32, answer: &str) -> Opinion {
    let answer = match answer.split_once(':').unwrap_or((answer, "")) {
        ("yes", format) => Answer::Recognised(format.to_owned()),
        ("no", _) => Answer::NotRecognised,
        ("undeclared", format) => Answer::Undeclared(format.to_owned()),
        ("none", _) => Answer::DeclaresNone,
        ("trap", message) => Answer::Failed { message: message.to_owned(), is_transient: false },
        ("timeout", message) => Answer::Failed { message: message.to_owned(), is_transient: true },
        ("loading", _) => Answer::Loading,
        ("failed", message) => Answer::NotReady(message.to_owned()),
        (other, _) => panic!("{other}"),
    };
    Opinion { class: class.to_owned(), priority, is_builtin: class.starts_with("core-"), answer }
}

/// One line for each case: the classes with priority and answer, the class that runs (`*` after it: it was detected), the decision.
fn decision(classes: &[(&str, i32, &str)], incumbent: &str) -> String {
    let opinions: Vec<Opinion> =
        classes.iter().map(|(class, priority, answer)| opinion(class, *priority, answer)).collect();
    let class = incumbent.trim_end_matches('*');
    let format = (class != incumbent).then(|| "f".to_owned());
    let running = ProvisionerInUse { class: class.to_owned(), format, ..ProvisionerInUse::default() };
    let priority = opinions.iter().find(|opinion| opinion.class == class).map(|opinion| opinion.priority);
    let incumbent = (!class.is_empty()).then_some(Incumbent { provisioner: &running, priority });
    let decided = words(choose(&opinions, incumbent));
    // Those with a lower priority than the first that recognises the content are not asked.
    let highest = opinions.iter().filter(|opinion| opinion.format().is_some()).map(|opinion| opinion.priority).max();
    let asked: Vec<Opinion> =
        opinions.into_iter().filter(|opinion| highest.is_none_or(|highest| opinion.priority >= highest)).collect();
    assert_eq!(words(choose(&asked, incumbent)), decided, "{asked:?}");
    decided
}

fn words(decided: Result<Detected<'_>, Undecided>) -> String {
    match decided {
        Ok(Detected { class, format }) => format!("{class} {format}"),
        Err(Undecided::Unrecognised { .. }) => "unrecognised".to_owned(),
        Err(Undecided::NotReady { .. }) => "not ready".to_owned(),
        Err(Undecided::Ambiguous { recognised, .. }) => format!("ambiguous {}", recognised.join(" ")),
        Err(Undecided::Loading(classes)) => format!("loading {}", classes.join(" ")),
        Err(Undecided::IncumbentUnavailable { class, recognised, is_gone, .. }) => {
            format!("{class} unavailable, gone {is_gone}, {recognised:?}")
        }
    }
}

#[test]
fn the_class_that_recognises_the_content_wins_and_of_several_the_highest_priority() {
    let (yes, no) = ("yes:f", "no");
    for (classes, wins) in [
        (vec![], "unrecognised"),
        (vec![("a", 0, no), ("b", 5, no)], "unrecognised"),
        (vec![("a", 0, yes), ("b", 5, no)], "a f"),
        (vec![("a", 0, yes), ("b", 5, "yes:g")], "b g"),
        (vec![("a", -1, yes), ("b", -2, yes)], "a f"),
        (vec![("a", 3, yes), ("b", 3, yes), ("c", 2, yes)], "ambiguous a (f) b (f)"),
        // The built-in classes count as one, with the narrowest format.
        (vec![("core-set", 0, yes), ("core-plain", 0, yes)], "core-set f"),
        (vec![("core-set", 0, no), ("core-plain", 0, yes), ("a", 0, yes)], "ambiguous core-plain (f) a (f)"),
        (vec![("core-set", 0, yes), ("core-plain", 0, yes), ("a", -1, yes)], "core-set f"),
        // What does not count as a recognised format.
        (vec![("a", 5, "undeclared:x"), ("b", 0, yes)], "b f"),
        (vec![("a", 5, "none"), ("b", 0, yes)], "b f"),
        (vec![("a", 5, "trap:x"), ("b", 5, "timeout:x"), ("c", 0, yes)], "c f"),
        (vec![("a", 5, "undeclared:x"), ("b", 0, "none"), ("c", 0, "trap:x")], "unrecognised"),
    ] {
        assert_eq!(decision(&classes, ""), wins, "{classes:?}");
    }
}

#[test]
fn a_class_that_is_not_ready_holds_up_only_what_it_may_outrank() {
    let yes = "yes:f";
    for (classes, wins) in [
        // It may recognise the content, and nothing else does.
        (vec![("a", 0, "failed:x"), ("b", 0, "no")], "not ready"),
        (vec![("a", 0, "loading"), ("b", 0, "no")], "loading a"),
        // A class that appears together with the BundleDeployment is waited for.
        (vec![("a", 0, "loading"), ("b", 0, yes)], "loading a"),
        (vec![("a", 5, "loading"), ("b", 0, yes)], "loading a"),
        (vec![("a", -1, "loading"), ("b", 0, yes)], "b f"),
        // One that cannot be loaded is not.
        (vec![("a", 5, "failed:x"), ("b", 0, yes)], "b f"),
    ] {
        assert_eq!(decision(&classes, ""), wins, "{classes:?}");
    }
}

#[test]
fn what_is_installed_keeps_its_class_unless_a_higher_priority_recognises_it() {
    let (yes, no) = ("yes:f", "no");
    for (classes, incumbent, wins) in [
        (vec![("a", 0, yes), ("b", 0, yes)], "a*", "a f"),
        (vec![("a", 0, yes), ("b", 0, yes)], "b*", "b f"),
        (vec![("a", 0, yes), ("b", 1, yes)], "a*", "b f"),
        // A class that the spec named before is kept, too, but holds nothing up.
        (vec![("core-set", 0, yes), ("core-plain", 0, yes)], "core-plain", "core-plain f"),
        (vec![("a", 0, yes)], "b", "a f"),
        (vec![("a", 0, yes), ("b", 0, "failed:x")], "b", "a f"),
        // It does not recognise the content any more.
        (vec![("a", 0, yes), ("b", 0, no)], "b*", "a f"),
        (vec![("a", 0, yes), ("b", 0, "trap:x")], "b*", "a f"),
        // It cannot be asked.
        (vec![("a", 0, yes)], "b*", r#"b unavailable, gone true, ["a (f)"]"#),
        (vec![("a", 0, no)], "b*", "b unavailable, gone true, []"),
        (vec![("a", 0, yes), ("b", 0, "failed:x")], "b*", r#"b unavailable, gone false, ["a (f)"]"#),
        (vec![("a", 0, yes), ("b", 0, "timeout:x")], "b*", r#"b unavailable, gone false, ["a (f)"]"#),
        (vec![("a", 0, yes), ("b", 1, "loading")], "b*", r#"b unavailable, gone false, ["a (f)"]"#),
        (vec![("a", 5, yes), ("b", 1, "loading")], "b*", "a f"),
        // After a restart another class is still being loaded.
        (vec![("a", 0, yes), ("b", 5, "loading")], "a*", "a f"),
    ] {
        assert_eq!(decision(&classes, incumbent), wins, "{classes:?} {incumbent}");
    }
}

#[test]
fn messages_say_who_looked_and_what_to_do() {
    let message = |classes: &[(&str, i32, &str)], incumbent: &str| {
        let opinions: Vec<Opinion> =
            classes.iter().map(|(class, priority, answer)| opinion(class, *priority, answer)).collect();
        let running = ProvisionerInUse {
            class: incumbent.to_owned(),
            format: Some("f".to_owned()),
            ..ProvisionerInUse::default()
        };
        let priority = opinions.iter().find(|opinion| opinion.class == incumbent).map(|opinion| opinion.priority);
        let incumbent = (!incumbent.is_empty()).then_some(Incumbent { provisioner: &running, priority });
        choose(&opinions, incumbent).map(|_| ()).unwrap_err().to_string()
    };
    let messages = [
        message(
            &[("core-plain", 0, "no"), ("a", 0, "undeclared:x"), ("b", 0, "none"), ("c", 0, "trap:it trapped")],
            "",
        ),
        message(&[("core-plain", 0, "no"), ("a", 0, "failed:no such image")], ""),
        message(&[("core-plain", 0, "yes:plain+v0"), ("a", 0, "yes:x")], ""),
        message(&[("core-plain", 0, "yes:plain+v0"), ("a", 0, "loading")], ""),
        message(&[("core-plain", 0, "yes:plain+v0")], "a"),
        message(&[("a", 0, "failed:no such image")], "a"),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    no provisioner class recognises the content of the bundle (a returned the format "x", which it does not declare; b was not asked, since it declares no formats; c failed: it trapped; asked: core-plain): correct the content, name a class in spec.provisionerClassName, or create a ProvisionerClass that recognises it
    no provisioner class that is ready recognises the content of the bundle (a is not ready and may recognise it: no such image; asked: core-plain): name a class in spec.provisionerClassName, or find out why these are not ready
    several provisioner classes with priority 0 recognise the content of the bundle: core-plain (plain+v0), a (x); name one of them in spec.provisionerClassName, or raise spec.priority of a ProvisionerClass
    waiting until provisioner classes are loaded that may recognise the content of the bundle: a
    provisioner class a, which rendered the installed release from the same content, does not exist any more; the release stays installed; create the class again, or name another class in spec.provisionerClassName: core-plain (plain+v0)
    provisioner class a, which rendered the installed release from the same content, is not ready: no such image; the release stays installed; wait until it is ready, or name another class in spec.provisionerClassName
    "#);
}

#[test]
fn the_class_of_the_installed_release_counts_for_the_same_content_and_component() {
    let installed = |content: &str| -> BundleDeployment {
        let mut deployment = BundleDeployment::new("a", chandler_api::BundleDeploymentSpec::default());
        let provisioner = ProvisionerInUse {
            class: "c".into(),
            digest: "sha256:1".into(),
            format: Some("f".into()),
            ..ProvisionerInUse::default()
        };
        let revision =
            chandler_api::Revision { content_digest: content.into(), provisioner, ..chandler_api::Revision::default() };
        deployment.status =
            Some(chandler_api::BundleDeploymentStatus { history: vec![revision], ..Default::default() });
        deployment
    };
    assert!(Incumbent::of(&installed("x"), "y", |_| None).is_none());
    let same = installed("x");
    let incumbent = Incumbent::of(&same, "x", |_| Some(1)).expect("the content is the same");
    assert_eq!(incumbent.recorded("c", "sha256:1"), Some(Answer::Recognised("f".into())));
    assert_eq!(incumbent.recorded("c", "sha256:2"), None);
    assert_eq!(incumbent.recorded("d", "sha256:1"), None);
}
