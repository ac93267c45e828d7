//! Compilation in a child process, its limits, the code cache and the quarantine.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as well")]

use std::{fs, path::Path, time::Duration};

use chandler_core::Reason;
use chandler_engine::{CompileLimits, Compiler, Engine, EngineOptions, EngineStatistics, Limits, LoadError, Retry};
use chandler_test_components::{IDLE, component, idle, module};

use crate::support::content;

fn child() -> Compiler {
    Compiler::Child { program: env!("CARGO_BIN_EXE_chandler-compile").into(), arguments: Vec::new() }
}

fn engine(cache: &Path, compiler: Compiler, compile_limits: CompileLimits) -> Engine {
    let cache_directory = Some(cache.to_owned());
    Engine::new(EngineOptions { cache_directory, compiler, compile_limits, ..EngineOptions::default() }).unwrap()
}

/// A component that takes seconds to compile.
fn bomb() -> Vec<u8> {
    let step = "(local.set 0 (i64.xor (i64.mul (local.get 0) (local.get 1)) (i64.load (i32.wrap_i64 (local.get 0)))))";
    let function = format!("(func (param i64 i64) (result i64) {} (local.get 0))", step.repeat(500));
    component(&module("", IDLE, &function.repeat(400)), "", &[])
}

/// A component with a custom section of this size, including the name of the section.
fn padded(size: u32) -> Vec<u8> {
    let leb = |mut number: u32| {
        let mut bytes = Vec::new();
        while number >= 0x80 {
            bytes.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        bytes.push(number.to_le_bytes()[0]);
        bytes
    };
    let mut wasm = idle();
    wasm.push(0);
    wasm.extend(leb(size));
    wasm.extend([1, b'x']);
    wasm.resize(wasm.len() + size as usize - 2, 0);
    wasm
}

async fn compile_error(compiler: Compiler, limits: CompileLimits, wasm: &[u8]) -> String {
    let cache = tempfile::tempdir().unwrap();
    match engine(cache.path(), compiler, limits).load(wasm).await {
        Err(error @ LoadError::Compile(_)) => {
            assert_eq!(error.reason(), Reason::CompileFailed);
            error.to_string()
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the component was compiled"),
    }
}

/// The error for a quarantined component.
fn quarantined(problem: &str) -> String {
    format!(
        "failed to compile: {problem}; Chandler retries after one hour, when the component or the version of Chandler \
         changes, or when a reconcile of the class is requested"
    )
}

async fn detects_nothing(engine: &Engine, wasm: &[u8]) {
    let provisioner = engine.load(wasm).await.unwrap();
    assert_eq!(provisioner.detect(content([]), &Limits::default()).await.unwrap(), None);
}

#[tokio::test]
async fn compiled_code_survives_a_restart() {
    let cache = tempfile::tempdir().unwrap();
    let wasm = idle();
    let first = engine(cache.path(), child(), CompileLimits::default());
    let loaded = first.load(&wasm).await.unwrap();
    detects_nothing(&first, &wasm).await;
    assert_eq!(loaded.digest(), &chandler_core::Digest::of(&wasm), "the component is still loaded");
    assert_eq!(first.statistics(), EngineStatistics { compiled: 1, ..EngineStatistics::default() });
    // After a restart the code comes from the cache; no compiler runs.
    let absent = Compiler::Child { program: "/nonexistent/compiler".into(), arguments: Vec::new() };
    let second = engine(cache.path(), absent, CompileLimits::default());
    detects_nothing(&second, &wasm).await;
    assert_eq!(second.statistics(), EngineStatistics { cache_hits: 1, ..EngineStatistics::default() });
}

#[tokio::test]
async fn modified_cache_files_are_not_used() {
    let cache = tempfile::tempdir().unwrap();
    let wasm = idle();
    detects_nothing(&engine(cache.path(), child(), CompileLimits::default()), &wasm).await;
    let files = || fs::read_dir(cache.path().join("code")).unwrap().map(|entry| entry.unwrap().path());
    let file = files().find(|path| path.extension().is_some_and(|extension| extension == "cwasm")).unwrap();
    let good = fs::read(&file).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    let foreign = wasm.clone();
    for bad in [flipped, good[..good.len() / 2].to_vec(), good[32..].to_vec(), foreign, Vec::new()] {
        fs::write(&file, &bad).unwrap();
        let engine = engine(cache.path(), child(), CompileLimits::default());
        detects_nothing(&engine, &wasm).await;
        assert_eq!(engine.statistics(), EngineStatistics { compiled: 1, cache_hits: 0, cache_rejects: 1 });
        assert_eq!(fs::read(&file).unwrap(), good, "the file is replaced");
    }
}

#[tokio::test]
async fn the_child_process_stops_at_its_limits() {
    let bomb = bomb();
    let small_memory = || CompileLimits { memory: 80 << 20, ..CompileLimits::default() };
    let short = CompileLimits { cpu_time: Duration::from_secs(1), ..CompileLimits::default() };
    let little_code = CompileLimits { code_bytes: 1000, ..CompileLimits::default() };
    for wasm in [&bomb, &padded(60 << 20)] {
        let error = compile_error(child(), small_memory(), wasm).await;
        assert_eq!(error, quarantined("the compiler needs more than 80 MiB of memory"));
    }
    assert_eq!(compile_error(child(), short, &bomb).await, quarantined("the compiler needs more than 1 s of CPU time"));
    assert_eq!(
        compile_error(child(), little_code, &idle()).await,
        quarantined("the compiled code is larger than 1000 bytes")
    );
}

/// A compiler that exceeds the CPU time of a quick attempt with a component that says so, and else hangs with it.
const HANGING: &str = r#"
file="$2/$$"; cat > "$file"
if grep -q HANGS "$file"; then
  echo attempt >> "$2/attempts"
  if [ "$4" -le 10 ]; then kill -XCPU $$; fi
  exec sleep 600
fi
exec "$1" "$3" "$4" < "$file"
"#;

#[tokio::test]
async fn a_component_with_which_the_compiler_hangs_delays_no_other_one() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap().to_owned();
    let arguments = ["-c", HANGING, "sh", env!("CARGO_BIN_EXE_chandler-compile"), &place];
    let compiler = Compiler::Child { program: "/bin/sh".into(), arguments: arguments.map(Into::into).to_vec() };
    let engine = engine(&directory.path().join("cache"), compiler, CompileLimits::default());
    let hanging = [idle().as_slice(), &[0, 6, 5], b"HANGS"].concat();
    let hangs = tokio::spawn({
        let engine = engine.clone();
        async move { engine.load(&hanging).await.map(|_| ()) }
    });
    // The quick attempt ended, and the other one hangs.
    let attempts = || fs::read_to_string(directory.path().join("attempts")).unwrap_or_default().lines().count();
    while attempts() < 2 {
        assert!(!hangs.is_finished());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    detects_nothing(&engine, &idle()).await;
    assert!(!hangs.is_finished());
    hangs.abort();
}

/// A compiler that notes that it began, and waits for a file with the name of its limit. With the limits of a quick attempt, it then exceeds its CPU time.
const WAITING: &str = r#"
cat > "$2/$$"; echo "$4" >> "$2/attempts"
until [ -e "$2/go$4" ]; do sleep 0.01; done
if [ "$4" -le 10 ]; then kill -XCPU $$; fi
exec "$1" "$3" "$4" < "$2/$$"
"#;

/// A start of the controller waits for some seconds only, and a reconcile may be cancelled.
#[tokio::test]
async fn a_compilation_is_not_lost_when_its_caller_stops_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap().to_owned();
    let arguments = ["-c", WAITING, "sh", env!("CARGO_BIN_EXE_chandler-compile"), &place];
    let compiler = Compiler::Child { program: "/bin/sh".into(), arguments: arguments.map(Into::into).to_vec() };
    let cache = directory.path().join("cache");
    let engine = engine(&cache, compiler, CompileLimits::default());
    let attempts = || fs::read_to_string(directory.path().join("attempts")).unwrap_or_default();
    let wasm = idle();
    let begin_and_leave = async |begun: &str| {
        let mut load = std::pin::pin!(engine.load(&wasm));
        while attempts() != begun {
            assert!(tokio::time::timeout(Duration::from_millis(10), &mut load).await.is_err(), "the compiler waits");
        }
    };
    let go = |limit: &str| fs::write(directory.path().join(format!("go{limit}")), "").unwrap();
    begin_and_leave("10\n").await;
    go("10");
    // The quick attempt is not made again.
    begin_and_leave("10\n240\n").await;
    go("240");
    detects_nothing(&engine, &wasm).await;
    assert_eq!(attempts(), "10\n240\n", "each attempt is made once");
    assert_eq!(engine.statistics().compiled, 1);
    let absent = Compiler::Child { program: "/nonexistent/compiler".into(), arguments: Vec::new() };
    detects_nothing(&self::engine(&cache, absent, CompileLimits::default()), &wasm).await;
}

/// A compiler that notes that it began, waits for a file, and crashes.
const CRASHING_LATER: &str = r#"
echo run >> "$1/attempts"
until [ -e "$1/go" ]; do sleep 0.01; done
exit 101
"#;

/// Else a caller that leaves, as a start of the controller does after some seconds, would have it compiled again and again.
#[tokio::test]
async fn a_compilation_that_fails_after_its_caller_left_is_quarantined() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().to_str().unwrap().to_owned();
    let arguments = ["-c", CRASHING_LATER, "sh", &place];
    let compiler = Compiler::Child { program: "/bin/sh".into(), arguments: arguments.map(Into::into).to_vec() };
    let engine = engine(&directory.path().join("cache"), compiler, CompileLimits::default());
    let attempts = || fs::read_to_string(directory.path().join("attempts")).unwrap_or_default();
    let wasm = idle();
    {
        let mut load = std::pin::pin!(engine.load(&wasm));
        while attempts().is_empty() {
            assert!(tokio::time::timeout(Duration::from_millis(10), &mut load).await.is_err(), "the compiler waits");
        }
    }
    fs::write(directory.path().join("go"), "").unwrap();
    let error = engine.load(&wasm).await.err().unwrap();
    assert_eq!(error.to_string(), quarantined("the compiler ended with exit code 101"));
    assert_eq!(attempts(), "run\n", "it is not compiled again");
}

#[tokio::test]
async fn missing_and_crashing_compilers_are_reported() {
    let run =
        |program: &str, argument: &str| Compiler::Child { program: program.into(), arguments: vec![argument.into()] };
    let wasm = idle();
    let absent = compile_error(run("/nonexistent/compiler", ""), CompileLimits::default(), &wasm).await;
    assert_eq!(
        absent,
        "failed to compile: failed to run the compiler /nonexistent/compiler: No such file or directory (os error 2)"
    );
    let failing = compile_error(run("/bin/false", ""), CompileLimits::default(), &wasm).await;
    assert_eq!(failing, quarantined("the compiler ended with exit code 1"));
    let loud = Compiler::Child {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), "echo assertion failed >&2; exit 101".into()],
    };
    let loud = compile_error(loud, CompileLimits::default(), &wasm).await;
    assert_eq!(loud, quarantined("the compiler ended with exit code 101: assertion failed"));
}

/// A busy machine is not the component's fault: a compiler that runs out of wall time, and not of CPU time, runs again at the next try.
#[tokio::test]
async fn a_compiler_that_is_only_slow_is_retried() {
    let cache = tempfile::tempdir().unwrap();
    let runs = cache.path().join("runs");
    let script = format!("echo run >> {}; exec sleep 600", runs.display());
    let slow = Compiler::Child { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()] };
    // Long enough for a shell to begin.
    let limits = CompileLimits { time: Duration::from_secs(2), ..CompileLimits::default() };
    let wasm = idle();
    let engine = engine(cache.path(), slow, limits);
    for run in 1..3 {
        let error = engine.load(&wasm).await.err().unwrap();
        assert_eq!((error.reason(), error.retry()), (Reason::CompilerBusy, Retry::BackOff));
        assert_eq!(
            error.to_string(),
            "failed to compile: the compiler did not finish within 2 s, and did not use up its CPU time: the machine is busy, or the \
             compiler hangs; Chandler retries"
        );
        assert_eq!(fs::read_to_string(&runs).unwrap().lines().count(), run, "it does not cause a quarantine");
    }
    // A machine that is busy no longer compiles it.
    detects_nothing(&self::engine(cache.path(), child(), CompileLimits::default()), &wasm).await;
}

#[tokio::test]
async fn a_user_can_end_a_quarantine() {
    let cache = tempfile::tempdir().unwrap();
    let crashing = Compiler::Child { program: "/bin/false".into(), arguments: Vec::new() };
    let wasm = idle();
    let crashing = engine(cache.path(), crashing, CompileLimits::default());
    let failed = crashing.load(&wasm).await.err().unwrap().to_string();
    assert_eq!(failed, quarantined("the compiler ended with exit code 1"));
    let good = engine(cache.path(), child(), CompileLimits::default());
    assert_eq!(good.load(&wasm).await.err().unwrap().to_string(), failed, "over a restart");
    good.release_from_quarantine(&chandler_core::Digest::of(&wasm)).await;
    detects_nothing(&good, &wasm).await;
}

/// A component that crashes the compiler reaches it once: neither a retry nor a restart compiles it again.
#[tokio::test]
async fn a_component_that_crashes_the_compiler_is_quarantined() {
    let cache = tempfile::tempdir().unwrap();
    let runs = cache.path().join("runs");
    let script = format!("echo run >> {}; exit 101", runs.display());
    let failing = || Compiler::Child { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.clone().into()] };
    let count = || fs::read_to_string(&runs).unwrap().lines().count();
    let wasm = idle();
    let first = engine(cache.path(), failing(), CompileLimits::default());
    let mut texts = std::collections::BTreeSet::new();
    for _ in 0..3 {
        texts.insert(first.load(&wasm).await.err().unwrap().to_string());
    }
    let restarted = engine(cache.path(), failing(), CompileLimits::default());
    texts.insert(restarted.load(&wasm).await.err().unwrap().to_string());
    assert_eq!(texts.into_iter().collect::<Vec<_>>(), [quarantined("the compiler ended with exit code 101")]);
    assert_eq!(count(), 1, "the compiler ran once");
    // Other components are not affected.
    let other = component(&module("", IDLE, "(func)"), "", &[]);
    assert_eq!(restarted.load(&other).await.err().unwrap().reason(), Reason::CompileFailed);
    assert_eq!(count(), 2);
}

#[tokio::test]
async fn the_compiler_rejects_invalid_components() {
    // Its sections can be parsed, but its only function has the wrong type.
    let wasm = wat::parse_str(
        r#"(component
            (core module (func (result i32) (i64.const 0)))
            (instance $i) (export "chandler:provisioner/provisioner@0.1.0" (instance $i)))"#,
    )
    .unwrap();
    for compiler in [child(), Compiler::InProcess] {
        let error = compile_error(compiler, CompileLimits::default(), &wasm).await;
        assert!(error.contains("type mismatch"), "{error}");
    }
}

/// The child inherits no environment and fails without its limits.
#[tokio::test]
async fn the_child_process_requires_limits() {
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_chandler-compile")).output().unwrap();
    assert!(!status.status.success());
    assert!(String::from_utf8_lossy(&status.stderr).contains("expected two arguments"));
}
