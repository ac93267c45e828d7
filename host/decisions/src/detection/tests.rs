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

fn opinions(classes: &[(&str, i32, &str)]) -> Vec<Opinion> {
    classes.iter().map(|(class, priority, answer)| opinion(class, *priority, answer)).collect()
}

/// The decision about a new installation: the classes with priority and answer.
fn decision(classes: &[(&str, i32, &str)]) -> String {
    let opinions = opinions(classes);
    let decided = words(choose(&opinions));
    // Classes below the first that recognises the content need not be asked.
    let highest = highest(&opinions);
    let asked: Vec<Opinion> =
        opinions.into_iter().filter(|opinion| highest.is_none_or(|highest| opinion.priority >= highest)).collect();
    assert_eq!(words(choose(&asked)), decided, "{asked:?}");
    decided
}

/// The decision about an installed release of class `a`: the recorded format, what its class says about the content (`None` if that is
/// the installed one, `gone` if there is no such class), and other classes.
fn kept(recorded: Option<&str>, own: Option<&str>, others: &[(&str, i32, &str)]) -> String {
    let running = installed_by("a", recorded);
    let incumbent = Incumbent { provisioner: &running, same_content: own.is_none() };
    let own = match own {
        None => Own::Unasked,
        Some("gone") => Own::Gone,
        Some(answer) => Own::Answered(opinion("a", 0, answer).answer),
    };
    match keep(incumbent, &own, &opinions(others)) {
        Ok(format) => format!("a {}", format.unwrap_or_default()).trim().to_owned(),
        Err(error) => words(Err(error)),
    }
}

fn installed_by(class: &str, format: Option<&str>) -> ProvisionerInUse {
    ProvisionerInUse { class: class.to_owned(), format: format.map(str::to_owned), ..ProvisionerInUse::default() }
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
        Err(Undecided::IncumbentDeclines { class, recognised, .. }) => format!("{class} declines, {recognised:?}"),
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
        assert_eq!(decision(&classes), wins, "{classes:?}");
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
        assert_eq!(decision(&classes), wins, "{classes:?}");
    }
}

#[test]
fn what_is_installed_keeps_its_class_whatever_others_say() {
    let yes = "yes:f";
    for (recorded, own, others, decided) in [
        // The content is the installed one.
        (Some("f"), None, vec![("b", 0, yes)], "a f"),
        (Some("f"), None, vec![("b", 9, yes)], "a f"),
        (Some("f"), None, vec![("b", 9, "loading")], "a f"),
        // Its author named the class before.
        (None, None, vec![("b", 9, yes)], "a"),
        (None, Some("no"), vec![("b", 9, yes)], "a"),
        (None, Some("none"), vec![], "a"),
        (None, Some("yes:g"), vec![], "a g"),
        // New content does not bring another class.
        (Some("f"), Some("yes:g"), vec![("b", 9, yes)], "a g"),
        (Some("f"), Some("no"), vec![("b", 0, yes), ("c", -1, yes)], r#"a declines, ["b (f)"]"#),
        (Some("f"), Some("trap:x"), vec![("b", 0, "no")], "a declines, []"),
        (Some("f"), Some("undeclared:x"), vec![("b", 9, yes)], r#"a declines, ["b (f)"]"#),
        // It cannot be used.
        (Some("f"), Some("gone"), vec![("b", 9, yes)], r#"a unavailable, gone true, ["b (f)"]"#),
        (None, Some("gone"), vec![("b", 0, "no")], "a unavailable, gone true, []"),
        (Some("f"), Some("failed:x"), vec![("b", 0, yes)], r#"a unavailable, gone false, ["b (f)"]"#),
        (None, Some("failed:x"), vec![("b", 0, yes)], r#"a unavailable, gone false, ["b (f)"]"#),
        (Some("f"), Some("timeout:x"), vec![("b", 0, yes)], r#"a unavailable, gone false, ["b (f)"]"#),
        (Some("f"), Some("loading"), vec![("b", 5, yes)], r#"a unavailable, gone false, ["b (f)"]"#),
    ] {
        assert_eq!(kept(recorded, own, &others), decided, "{recorded:?} {own:?} {others:?}");
    }
}

#[test]
fn classes_with_a_higher_priority_are_a_warning() {
    let message = |higher: &[(&str, i32, &str)]| outranked("a", &opinions(higher)).map(|warning| warning.message);
    assert_eq!(message(&[("b", 5, "no"), ("c", 5, "trap:x"), ("d", 5, "loading")]), None);
    insta::assert_snapshot!(
        message(&[("b", 5, "yes:f"), ("c", 5, "yes:g"), ("d", 3, "yes:f")]).unwrap(),
        @"provisioner classes with a higher priority recognise the content, too: b (f), c (g); the installed release keeps class a, which rendered it, unless spec.provisionerClassName names another one, such as b"
    );
}

#[test]
fn messages_say_who_looked_and_what_to_do() {
    let message = |classes: &[(&str, i32, &str)]| choose(&opinions(classes)).map(|_| ()).unwrap_err().to_string();
    let running = installed_by("a", Some("f"));
    let of_installed = |own: Own, others: &[(&str, i32, &str)]| {
        let incumbent = Incumbent { provisioner: &running, same_content: false };
        keep(incumbent, &own, &opinions(others)).unwrap_err().to_string()
    };
    let answered = |answer: &str| Own::Answered(opinion("a", 0, answer).answer);
    let messages = [
        message(&[("core-plain", 0, "no"), ("a", 0, "undeclared:x"), ("b", 0, "none"), ("c", 0, "trap:it trapped")]),
        message(&[("core-plain", 0, "no"), ("a", 0, "failed:no such image")]),
        message(&[("core-plain", 0, "yes:plain+v0"), ("a", 0, "yes:x")]),
        message(&[("core-plain", 0, "yes:plain+v0"), ("a", 0, "loading")]),
        of_installed(Own::Gone, &[("core-plain", 0, "yes:plain+v0")]),
        of_installed(answered("failed:no such image"), &[]),
        of_installed(answered("no"), &[("core-plain", 0, "yes:plain+v0")]),
    ];
    insta::assert_snapshot!(messages.join("\n"), @r#"
    no provisioner class recognises the content of the bundle (a returned the format "x", which it does not declare; b was not asked, since it declares no formats; c failed: it trapped; asked: core-plain): correct the content, name a class in spec.provisionerClassName, or create a ProvisionerClass that recognises it
    no provisioner class that is ready recognises the content of the bundle (a is not ready and may recognise it: no such image; asked: core-plain): name a class in spec.provisionerClassName, or find out why these are not ready
    several provisioner classes with priority 0 recognise the content of the bundle: core-plain (plain+v0), a (x); name one of them in spec.provisionerClassName, or raise spec.priority of a ProvisionerClass
    waiting until provisioner classes are loaded that may recognise the content of the bundle: a
    provisioner class a, which rendered the installed release, does not exist any more; the release stays installed; create the class again, or name another class in spec.provisionerClassName: core-plain (plain+v0)
    provisioner class a, which rendered the installed release, is not ready: no such image; the release stays installed; wait until it is ready, or name another class in spec.provisionerClassName
    the new content cannot be rendered: provisioner class a, which rendered the installed release, does not recognise it; the release stays installed; correct the content, or name the class that renders it in spec.provisionerClassName: core-plain (plain+v0)
    "#);
}

#[test]
fn the_class_of_the_installed_release_is_that_of_the_last_revision() {
    let mut deployment = BundleDeployment::new("a", chandler_api::BundleDeploymentSpec::default());
    assert!(Incumbent::of(&deployment, "x").is_none());
    let revision = |class: &str, content: &str| chandler_api::Revision {
        content_digest: content.into(),
        provisioner: installed_by(class, None),
        ..chandler_api::Revision::default()
    };
    let history = vec![revision("b", "x"), revision("c", "y")];
    deployment.status = Some(chandler_api::BundleDeploymentStatus { history, ..Default::default() });
    let settled = |content| Incumbent::of(&deployment, content).map(|it| (it.class(), it.is_settled()));
    assert_eq!((settled("x"), settled("y")), (Some(("c", false)), Some(("c", true))));
}
