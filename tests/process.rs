//! Programs under `prwarden confine`: whatever they start is gone when the run is over.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use prwarden::budget::Reservation;
use prwarden::clock::Stop;
use prwarden::config::{EngineConfig, EngineKind, ReviewConfig};
use prwarden::engine::{Engine, EngineFailure, EngineRequest, Task, Usage};
use prwarden::ids::{CommitSha, Tokens};
use prwarden::process::{Ended, Finished, ProcessError, Program, run_with_grace};
use prwarden::workspace::Change;

const GRACE: Duration = Duration::from_millis(300);

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_prwarden"))
}

fn supervised(text: &str) -> Program {
    Program {
        executable: "bash".into(),
        args: vec!["-c".into(), text.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: "/".into(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(60),
        stdout_limit: 1 << 20,
        supervisor: Some(binary().into()),
    }
}

fn attempt(program: &Program) -> Result<Finished, ProcessError> {
    run_with_grace(program, &Stop::new(), GRACE)
}

/// A number of seconds to sleep that no other test and no other run uses.
fn seconds(case: u32) -> String {
    format!("{case}{:07}", std::process::id())
}

/// The processes, zombies included, that sleep that long.
fn sleepers(seconds: &str) -> Vec<i32> {
    let wanted = format!("sleep\0{seconds}\0");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if line
            .windows(wanted.len())
            .any(|part| part == wanted.as_bytes())
        {
            found.push(entry.file_name().to_str().unwrap().parse().unwrap());
        }
    }
    found
}

#[test]
fn streams_and_exit_code_pass_through() {
    let mut program = supervised("cat; echo trouble >&2; exit 7");
    program.stdin = b"hello".to_vec();
    let finished = attempt(&program).unwrap();
    assert_eq!(finished.code, Some(7));
    assert_eq!(finished.stdout, b"hello");
    assert_eq!(finished.stderr, b"trouble\n");
    assert_eq!(finished.ended, Ended::Itself);
}

#[test]
fn a_program_ended_by_a_signal_is_reported_as_a_shell_does() {
    let finished = attempt(&supervised("kill -ABRT $$")).unwrap();
    assert_eq!(finished.code, Some(128 + Signal::SIGABRT as i32));
}

#[test]
fn the_program_gains_no_privileges_leaves_no_core_and_writes_private_files() {
    let finished = attempt(&supervised(
        "umask; ulimit -c; grep NoNewPrivs /proc/self/status; env | cut -d= -f1 | sort | tr '\\n' ' '",
    ))
    .unwrap();
    let text = String::from_utf8(finished.stdout).unwrap();
    // PWD, SHLVL and _ are the shell's own.
    assert_eq!(text, "0077\n0\nNoNewPrivs:\t1\nPATH PWD SHLVL _ ");
}

#[test]
fn after_a_normal_end_a_grandchild_in_its_own_session_is_gone() {
    let time = seconds(1);
    let text = format!("setsid sleep {time} <&- >&- 2>&- & sleep 0.1; echo answer");
    let finished = attempt(&supervised(&text)).unwrap();
    assert_eq!(finished.ended, Ended::Itself);
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.stdout, b"answer\n");
    assert_eq!(sleepers(&time), [0; 0]);
}

#[test]
fn a_daemonized_descendant_with_a_dead_parent_is_gone() {
    let time = seconds(2);
    let text = format!("(setsid bash -c 'setsid sleep {time} & exit' &); sleep 0.2; exit 4");
    let finished = attempt(&supervised(&text)).unwrap();
    assert_eq!(finished.code, Some(4));
    assert_eq!(sleepers(&time), [0; 0]);
}

#[test]
fn past_the_time_out_nothing_is_left_of_a_program_that_resists() {
    let time = seconds(3);
    let mut program = supervised(&format!(
        "trap '' TERM; setsid bash -c 'trap \"\" TERM HUP; sleep {time}; sleep {time}' & \
         echo begun; sleep {time}; sleep {time}; sleep {time}"
    ));
    program.timeout = Duration::from_millis(500);
    let finished = attempt(&program).unwrap();
    assert_eq!(finished.ended, Ended::TimedOut);
    assert_eq!(finished.stdout, b"begun\n");
    assert_eq!(sleepers(&time), [0; 0]);
}

#[test]
fn a_program_that_forks_while_it_is_killed_is_caught() {
    let time = seconds(4);
    let mut program = supervised(&format!(
        "trap '' TERM; while :; do setsid sleep {time} & sleep 0.01; done"
    ));
    program.timeout = Duration::from_millis(500);
    assert_eq!(attempt(&program).unwrap().ended, Ended::TimedOut);
    assert_eq!(sleepers(&time), [0; 0]);
}

#[test]
fn a_stop_leaves_nothing() {
    let time = seconds(5);
    let stop = Stop::new();
    let watcher = stop.clone();
    let sought = time.clone();
    let stopper = std::thread::spawn(move || {
        while sleepers(&sought).is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        watcher.set();
    });
    let program = supervised(&format!("setsid sleep {time} & wait"));
    let finished = run_with_grace(&program, &stop, GRACE).unwrap();
    stopper.join().unwrap();
    assert_eq!(finished.ended, Ended::Stopped);
    assert_eq!(sleepers(&time), [0; 0]);
}

#[test]
fn too_much_output_leaves_nothing() {
    let time = seconds(6);
    let mut program = supervised(&format!("setsid sleep {time} & yes"));
    program.stdout_limit = 1000;
    let finished = attempt(&program).unwrap();
    assert_eq!(finished.ended, Ended::TooMuchOutput);
    assert_eq!(finished.stdout.len(), 1000);
    assert_eq!(sleepers(&time), [0; 0]);
}

#[test]
fn a_program_that_kills_its_supervisor_does_not_survive_it() {
    let time = seconds(7);
    let text = format!("sleep {time} & kill -KILL $PPID; sleep {time}");
    let finished = attempt(&supervised(&text)).unwrap();
    assert_eq!(finished.signal, Some(Signal::SIGKILL as i32));
    while !sleepers(&time).is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_cannot_be_started_is_an_error_and_not_an_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("engine");
    fs::write(&path, "#!/no/such/shell\n").unwrap();
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut program = supervised("");
    program.executable = path;
    let text = attempt(&program).unwrap_err().to_string();
    assert!(text.contains("interpreter"), "{text}");
    program.executable = "bash".into();
    program.supervisor = Some("/no/such/prwarden".into());
    assert!(attempt(&program).is_err());
}

#[test]
fn of_an_engine_past_its_time_out_nothing_is_left() {
    let time = seconds(10);
    let folder = tempfile::tempdir().unwrap();
    let head: CommitSha = "0123456789abcdef0123456789abcdef01234567".parse().unwrap();
    let change = Change {
        base: head.clone(),
        head,
        commits: 1,
        files: Vec::new(),
        patch: Vec::new(),
        lines: 0,
        omitted: Vec::new(),
    };
    let script = format!("setsid sleep {time} & exec sleep {time}");
    let config = EngineConfig {
        kind: EngineKind::Command,
        binary: None,
        command: vec!["bash".into(), "-c".into(), script],
        args: Vec::new(),
        model: None,
        expected_version: None,
        timeout: Duration::from_millis(500),
        env: Vec::new(),
        standards_paths: Vec::new(),
    };
    let request = EngineRequest {
        task: Task::Review,
        repo: None,
        pr: None,
        title: "",
        author: "",
        base_ref: "",
        change: &change,
        tree: folder.path(),
        earlier: &[],
        standards: &[],
        review: &ReviewConfig::default(),
        nonce: "n0nce",
        scratch: folder.path(),
    };
    let admission = Reservation::operator_run(Tokens(1));
    let run = Engine::new(&config, binary()).run(&admission, &request, &Stop::new());
    let failure = run.outcome.unwrap_err();
    assert!(
        matches!(failure, EngineFailure::Timeout { .. }),
        "{failure}"
    );
    assert_eq!(run.usage, Usage::UNKNOWN);
    assert_eq!(sleepers(&time), [0; 0]);
}

/// The role of a daemon in the test below: runs one supervised program until it is killed.
#[test]
#[ignore = "a process that another test starts and kills"]
fn a_daemon_with_one_run() {
    let time = std::env::var("SLEEP").unwrap();
    let program = supervised(&format!(
        "trap '' TERM; setsid bash -c 'trap \"\" TERM; sleep {time}; sleep {time}' & sleep {time}"
    ));
    attempt(&program).unwrap();
}

fn start_daemon(time: &str) -> Child {
    let daemon = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "a_daemon_with_one_run"])
        .env("SLEEP", time)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    while sleepers(time).len() < 2 {
        std::thread::sleep(Duration::from_millis(10));
    }
    daemon
}

#[test]
fn nothing_outlives_a_daemon_that_was_killed() {
    let time = seconds(8);
    let mut daemon = start_daemon(&time);
    daemon.kill().unwrap();
    daemon.wait().unwrap();
    while !sleepers(&time).is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_supervisor_whose_parent_is_already_another_starts_nothing() {
    let output = Command::new(binary())
        .args(["confine", "--parent", "1", "--", "echo", "started"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert_eq!(output.stdout, b"");
}

#[test]
fn an_interrupt_of_the_supervisor_ends_everything() {
    let time = seconds(9);
    let mut supervisor = Command::new(binary())
        .args(["confine", "--grace-ms", "200", "--", "bash", "-c"])
        .arg(format!(
            "trap '' INT; setsid sleep {time} & echo begun; sleep {time}"
        ))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(supervisor.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    kill(Pid::from_raw(supervisor.id().cast_signed()), Signal::SIGINT).unwrap();
    out.read_to_end(&mut Vec::new()).unwrap();
    supervisor.wait().unwrap();
    assert_eq!(sleepers(&time), [0; 0]);
}

/// A process of the same user, as an engine is one; as root, which may read everything, of another.
fn unprivileged(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if nix::unistd::Uid::effective().is_root() {
        command.uid(65_534).gid(65_534);
    }
    command
}

#[test]
fn no_process_of_the_same_user_reads_the_environment_or_the_memory() {
    use std::os::unix::fs::PermissionsExt;
    // Where everybody may run it.
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = dir.path().join("prwarden");
    fs::copy(binary(), &program).unwrap();
    let mut running = unprivileged(&program)
        .arg("sample-engine")
        .env("GITHUB_TOKEN", "secret")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let readable = |name: &str| {
        let file = format!("/proc/{}/{name}", running.id());
        let read = unprivileged("head").args(["-c", "1", &file]).output();
        read.unwrap().status.success()
    };
    // Until its first lines of code a process is readable like any other; it has no token to lose
    // before them that its parent did not have.
    let begun = std::time::Instant::now();
    while readable("environ") {
        assert!(begun.elapsed() < Duration::from_secs(60), "never shut");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!readable("mem"));
    assert!(readable("stat"), "what others need to know stays readable");
    running.kill().unwrap();
    running.wait().unwrap();
}
