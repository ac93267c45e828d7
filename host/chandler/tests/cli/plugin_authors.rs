//! `chandler plugin new`, `test`, `run`, `dev` and `bench`: what authors of provisioners run.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::support::{self, Outcome, chandler, root};

const LAMPS: &str = "target/plugins/test/lamps.wasm";
const NORTH_HEAD: &str = "docs/tutorial/north-head";

fn data(arguments: &[&str]) -> Value {
    serde_json::from_str(&chandler([arguments, &["-o", "json"]].concat(), "").data()).unwrap()
}

/// Writes the files of a case.
pub(crate) fn case(directory: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A component of a module that cargo built in this directory.
fn built(directory: &Path, name: &str) -> String {
    // The versions that this repository was tested with, none of which is downloaded.
    fs::copy(root().join("Cargo.lock"), directory.join("Cargo.lock")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--offline", "--release", "--target", "wasm32-unknown-unknown"]);
    build
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", directory.join("target"))
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    // What the component does is tested here, and not how fast.
    build.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "1");
    build.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let module = directory.join("target/wasm32-unknown-unknown/release").join(format!("{name}.wasm"));
    let component = directory.join("component.wasm").display().to_string();
    chandler(["plugin", "build", module.to_str().unwrap(), "--to", &component], "").data();
    component
}

#[test]
fn a_new_provisioner_compiles_passes_its_cases_and_conforms() {
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = home.path().join("two-masts");
    let (to, sdk) = (directory.to_str().unwrap(), root());
    let new = |more: &[&str]| chandler([&["plugin", "new", "two-masts", "--to", to], more].concat(), "");
    assert_eq!(new(&["--sdk", sdk.to_str().unwrap()]).data(), format!("{to}\n"));
    // The workspace compiles, lints and tests this source as sdk/templates/rust.
    let template = fs::read_to_string(root().join("sdk/templates/rust/src/lib.rs")).unwrap();
    let source = fs::read_to_string(directory.join("src/lib.rs")).unwrap();
    assert_eq!(source, template.replace("provisioner-template", "two-masts"));
    let again = new(&[]);
    assert_eq!(again.code, Some(2), "{}", again.stderr);
    assert!(again.stderr.contains("is not empty"), "{}", again.stderr);

    let component = built(&directory, "two_masts");
    let cases = directory.join("cases");
    let tested = data(&["plugin", "test", &component, cases.to_str().unwrap()]);
    assert_eq!((&tested["passed"], &tested["failed"]), (&json!(2), &json!(0)), "{tested:#}");
    let labels = cases.join("labels");
    let bundle = labels.join("bundle");
    let rendered = chandler(["render", bundle.to_str().unwrap(), "--provisioner", &component], "").data();
    assert!(rendered.contains("name: greeting"), "{rendered}");
    let inspected = data(&["plugin", "inspect", &component]);
    assert_eq!(inspected["facts"]["formats"], json!(["two-masts+v0"]));
    let badge = home.path().join("badge.json");
    let conforms = chandler(
        ["plugin", "conformance", &component, "--case", labels.to_str().unwrap(), "--badge", badge.to_str().unwrap()],
        "",
    );
    assert_eq!(conforms.code, Some(0), "{}{}", conforms.stdout, conforms.stderr);
    let badge: Value = serde_json::from_str(&fs::read_to_string(badge).unwrap()).unwrap();
    assert_eq!((&badge["schemaVersion"], &badge["color"]), (&json!(1), &json!("brightgreen")));
}

#[test]
fn a_new_provisioner_in_another_language_has_the_contract_and_cases() {
    let home = tempfile::tempdir().unwrap();
    let contract = fs::read_to_string(root().join("wit/0.1.0/provisioner.wit")).unwrap();
    for (language, source) in [("javascript", "provisioner.js"), ("python", "app.py")] {
        let directory = home.path().join(language);
        chandler(["plugin", "new", "sail", "--language", language, "--to", directory.to_str().unwrap()], "").data();
        assert!(fs::read_to_string(directory.join(source)).unwrap().contains("sail+v0"));
        assert_eq!(fs::read_to_string(directory.join("wit/provisioner.wit")).unwrap(), contract);
        assert!(directory.join("cases/labels/expected.yaml").is_file());
    }
    for (arguments, part) in [
        (vec!["plugin", "new", "Sail"], "lowercase letters"),
        (vec!["plugin", "new", "../sail"], "lowercase letters"),
        (vec!["plugin", "new", "std"], "reserved in Rust"),
        (vec!["plugin", "new", "sail", "--sdk", "docs"], "has no SDK"),
        (vec!["plugin", "new", "sail", "--language", "python", "--sdk", "."], "--sdk has no effect"),
    ] {
        let refused = chandler(&arguments, "");
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(part), "{arguments:?}: {}", refused.stderr);
    }
    assert!(!root().join("sail").exists());
}

#[test]
fn a_case_passes_only_while_the_provisioner_returns_what_it_expects() {
    let home = tempfile::tempdir().unwrap();
    let cases = home.path().join("cases");
    case(&cases.join("white"), &[("bundle/lamps.txt", "north-head white\n")]);
    case(
        &cases.join("broken"),
        &[("bundle/lamps.txt", "north-head white\nsouth-head\n"), ("case.yaml", "namespace: heads\n")],
    );
    let test = |more: &[&str]| -> Outcome {
        chandler([&["plugin", "test", LAMPS, cases.to_str().unwrap()], more].concat(), "")
    };
    let unknown = test(&[]);
    assert_eq!(unknown.code, Some(1), "{}", unknown.stderr);
    assert!(unknown.stdout.contains("FAILED  white: expected.yaml does not exist"), "{}", unknown.stdout);
    assert!(!cases.join("white/expected.yaml").exists(), "only --bless writes");
    assert!(test(&["--bless"]).data().contains("ok      white: expected.yaml was written"));
    assert_eq!(test(&[]).data(), "ok      broken\nok      white\n");
    let expected = cases.join("white/expected.yaml");
    insta::assert_snapshot!(fs::read_to_string(&expected).unwrap(), @r#"
    ---
    format: lamps+v0
    objects:
    - object:
        apiVersion: v1
        data:
          colour: white
        kind: ConfigMap
        metadata:
          name: north-head
      origin:
        column: 1
        line: 1
        path: lamps.txt
    "#);
    insta::assert_snapshot!(fs::read_to_string(cases.join("broken/expected.yaml")).unwrap(), @r#"
    ---
    failure:
      findings:
      - code: NoColour
        help: write `NAME COLOUR`
        location:
          column: 1
          line: 2
          path: lamps.txt
        message: "\"south-head\" has no colour"
        severity: error
      reason: InvalidContent
    format: lamps+v0
    "#);

    // A comment and another order change nothing; another value does.
    let blessed = fs::read_to_string(&expected).unwrap();
    fs::write(&expected, blessed.replace("---\n", "# by hand\n---\n")).unwrap();
    assert_eq!(test(&[]).code, Some(0));
    fs::write(&expected, blessed.replace("white", "red")).unwrap();
    let different = test(&[]);
    assert_eq!(different.code, Some(1), "{}", different.stderr);
    assert!(
        different.stdout.contains("colour: red") && different.stdout.contains("colour: white"),
        "{}",
        different.stdout
    );
    assert!(different.stderr.contains("2 cases: 1 passed, 1 failed"), "{}", different.stderr);
    let json: Value = serde_json::from_str(&test(&["-o", "json"]).stdout).unwrap();
    assert_eq!(json["cases"][1]["result"], "different", "{json:#}");
    let one = chandler(["plugin", "test", LAMPS, cases.join("broken").to_str().unwrap()], "");
    assert_eq!(one.data(), "ok      broken\n");

    fs::write(&expected, "object: []\n").unwrap();
    for (directory, part) in
        [(&*cases, "unknown field"), (home.path(), "has no bundle"), (Path::new("absent"), "failed to read")]
    {
        let refused = chandler(["plugin", "test", LAMPS, directory.to_str().unwrap()], "");
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let class = chandler(["plugin", "test", "helm", cases.to_str().unwrap()], "");
    assert_eq!(class.code, Some(2), "{}", class.stderr);
}

#[test]
fn a_run_shows_everything_that_the_provisioner_did() {
    let report = data(&["plugin", "run", LAMPS, NORTH_HEAD, "--name", "heads", "--api-kind", "v1/ConfigMap"]);
    assert_eq!(report["detected"]["format"], "lamps+v0");
    assert_eq!(report["schema"]["value"], Value::Null);
    assert_eq!(report["result"]["objects"].as_array().unwrap().len(), 2);
    assert_eq!(report["target"]["apiKinds"], json!(["v1/ConfigMap"]));
    assert_eq!(report["provisioned"]["asked"], json!([]));
    assert!(report["provisioned"]["memoryBytes"].as_u64().unwrap() > 0);
    let text = chandler(["plugin", "run", LAMPS, NORTH_HEAD], "").data();
    for part in ["format     lamps+v0", "ConfigMap north-head", "nothing about the target", "schema     none"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let schema = data(&["plugin", "run", "core-rukpak-io-plain", "tests/fixtures/plain/lighthouse"]);
    assert_eq!(schema["schema"]["value"]["type"], "object");

    let home = tempfile::tempdir().unwrap();
    case(home.path(), &[("lamps.txt", "north-head\n")]);
    let refused = chandler(["plugin", "run", LAMPS, home.path().to_str().unwrap()], "");
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stdout.contains("has no colour") && refused.stdout.contains("lamps.txt:1:1"), "{}", refused.stdout);
    assert!(refused.stderr.contains("InvalidContent"), "{}", refused.stderr);
    // What a provisioner logs.
    case(home.path(), &[("provision", "panic")]);
    let hostile = chandler(["plugin", "run", "target/plugins/test/hostile.wasm", home.path().to_str().unwrap()], "");
    assert_eq!(hostile.code, Some(1), "{}", hostile.stderr);
    assert!(hostile.stdout.contains("log:\n  error panicked at"), "{}", hostile.stdout);
}

#[test]
fn a_benchmark_has_times_and_sizes() {
    let report = data(&["plugin", "bench", LAMPS, NORTH_HEAD, "--calls", "5"]);
    assert_eq!(report["calls"], 5);
    for pointer in [
        "/compile/milliseconds",
        "/compile/bytes",
        "/provision/median",
        "/provision/p95",
        "/smallestCall/median",
        "/peakMemory",
    ] {
        assert!(
            report.pointer(pointer).and_then(Value::as_f64).is_some_and(|value| value > 0.0),
            "{pointer}: {report:#}"
        );
    }
    let text = chandler(["plugin", "bench", LAMPS, NORTH_HEAD, "--calls", "1"], "").data();
    assert!(text.contains("MEDIAN") && text.contains("peak memory"), "{text}");
    assert_eq!(chandler(["plugin", "bench", LAMPS, NORTH_HEAD, "--calls", "0"], "").code, Some(2));
}

/// A case with the files of this bundle.
pub(crate) fn case_of(bundle: &str) -> (tempfile::TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    let case = home.path().join("case");
    fs::create_dir(&case).unwrap();
    let copied = Command::new("cp").arg("-r").arg(root().join(bundle)).arg(case.join("bundle")).status();
    assert!(copied.unwrap().success());
    let path = case.display().to_string();
    (home, path)
}

#[test]
fn a_component_is_built_and_called_again_when_a_source_or_the_bundle_is_saved() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    fs::create_dir_all(path("bundle/manifests")).unwrap();
    let write_object = |name: &str| {
        let object = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
        fs::write(path("bundle/manifests/object.yaml"), object).unwrap();
    };
    write_object("first");
    fs::create_dir(path("src")).unwrap();
    fs::write(path("src/lib"), "false").unwrap();
    let component = root().join("target/plugins/plain.wasm");
    let mut command = support::command(&support::cache());
    command.args(["plugin", "dev", "sail.wasm", "./bundle", "--source", "src", "--build"]);
    command.arg(format!("sh src/lib && cp {} sail.wasm", component.display()));
    command.current_dir(directory.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let (send, lines) = mpsc::channel();
    let (out, err) = (process.stdout.take().unwrap(), process.stderr.take().unwrap());
    let forward = |stream: Box<dyn Read + Send>, send: mpsc::Sender<String>| {
        thread::spawn(move || {
            BufReader::new(stream).lines().map_while(Result::ok).try_for_each(|line| send.send(line).ok())
        })
    };
    forward(Box::new(out), send.clone());
    forward(Box::new(err), send);
    let until = |text: &str| {
        let mut seen = Vec::new();
        while let Ok(line) = lines.recv_timeout(Duration::from_mins(2)) {
            seen.push(line);
            if seen.last().unwrap().contains(text) {
                return;
            }
        }
        panic!("no {text:?} in {seen:#?}");
    };
    until("the build failed");
    until("waiting for a change");
    fs::write(path("src/lib"), "true # works now").unwrap();
    until("first");
    until("waiting for a change");
    write_object("second-object");
    until("second-object");
    until("waiting for a change");
    process.kill().unwrap();
    process.wait().unwrap();
}
