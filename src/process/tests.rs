use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// A shell script as a program, in a directory of its own. Nothing is supervised here.
fn script(text: &str) -> Program {
    Program {
        executable: "sh".into(),
        args: vec!["-c".into(), text.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        directory: "/".into(),
        stdin: Vec::new(),
        timeout: Duration::from_secs(60),
        stdout_limit: 1 << 20,
        supervisor: None,
    }
}

fn finish(program: &Program) -> Finished {
    run_with_grace(program, &Stop::new(), Duration::from_millis(200)).unwrap()
}

/// The numbers of running processes whose command line contains `mark`.
fn alive_with(mark: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(mark) {
            found.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn output_errors_and_exit_code_arrive() {
    let mut program = script("cat; echo trouble >&2; exit 7");
    program.stdin = b"hello".to_vec();
    let finished = finish(&program);
    assert_eq!(finished.code, Some(7));
    assert_eq!(finished.stdout, b"hello");
    assert_eq!(finished.stderr, b"trouble\n");
    assert_eq!(finished.ended, Ended::Itself);
}

#[test]
fn the_environment_is_what_was_given_and_nothing_else() {
    let mut program = script("");
    program.executable = "env".into();
    program.args.clear();
    program.env.push(("MARK".into(), "1".into()));
    let finished = finish(&program);
    let text = String::from_utf8(finished.stdout).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["MARK=1", "PATH=/usr/bin:/bin"]);
}

#[test]
fn megabytes_go_in_and_out_at_the_same_time() {
    let mut program = script("cat");
    program.stdin = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    program.stdout_limit = 4_000_000;
    let finished = finish(&program);
    assert_eq!(finished.ended, Ended::Itself);
    assert!(finished.stdout == program.stdin);
}

#[test]
fn a_program_that_does_not_read_its_input_is_no_failure() {
    let mut program = script("exec <&-; echo done");
    program.stdin = vec![b'x'; 1 << 20];
    let finished = finish(&program);
    assert_eq!(finished.code, Some(0));
    assert_eq!(finished.stdout, b"done\n");
}

#[test]
fn a_program_that_closes_its_output_and_goes_on_is_waited_for() {
    let finished = finish(&script("exec >&- 2>&-; sleep 0.3; exit 3"));
    assert_eq!(finished.code, Some(3));
}

#[test]
fn too_much_output_ends_the_program_and_keeps_the_limit() {
    let mut program = script("yes");
    program.stdout_limit = 100_000;
    let finished = finish(&program);
    assert_eq!(finished.ended, Ended::TooMuchOutput);
    assert_eq!(finished.stdout.len(), 100_000);
}

#[test]
fn output_just_over_the_limit_of_a_finished_program_is_noticed() {
    let mut program = script("printf 12345");
    program.stdout_limit = 4;
    let finished = finish(&program);
    assert_eq!(finished.ended, Ended::TooMuchOutput);
    assert_eq!(finished.stdout, b"1234");
    program.stdout_limit = 5;
    assert_eq!(finish(&program).ended, Ended::Itself);
}

#[test]
fn of_endless_standard_error_the_last_bytes_are_kept() {
    let finished = finish(&script("yes 0123456 | head -c 5000000 >&2; echo last >&2"));
    assert_eq!(finished.stderr.len(), STDERR_TAIL);
    assert!(finished.stderr.ends_with(b"last\n"));
}

#[test]
fn the_time_out_ends_a_program_that_ignores_sigterm() {
    let mark = format!("sleep 31{}", std::process::id());
    let mut program = script(&format!("trap '' TERM; echo begun; {mark}; {mark}; {mark}"));
    program.timeout = Duration::from_millis(300);
    let finished = finish(&program);
    assert_eq!(finished.ended, Ended::TimedOut);
    assert_eq!(finished.signal, Some(Signal::SIGKILL as i32));
    assert_eq!(finished.stdout, b"begun\n");
    assert_eq!(alive_with(&mark.replace(' ', "\0")), [""; 0]);
}

#[test]
fn a_program_may_use_the_grace_to_say_something() {
    let mut program = script("trap 'echo goodbye; exit 5' TERM; echo hello; sleep 60 & wait");
    program.timeout = Duration::from_millis(300);
    let finished = run_with_grace(&program, &Stop::new(), Duration::from_secs(60)).unwrap();
    assert_eq!(finished.ended, Ended::TimedOut);
    assert_eq!(finished.code, Some(5));
    assert_eq!(finished.stdout, b"hello\ngoodbye\n");
}

#[test]
fn a_stop_ends_the_program() {
    let stop = Stop::new();
    stop.set();
    let finished = run_with_grace(&script("sleep 60"), &stop, Duration::from_millis(200)).unwrap();
    assert_eq!(finished.ended, Ended::Stopped);
}

#[test]
fn children_of_the_group_do_not_outlive_the_program() {
    let mark = format!("sleep 32{}", std::process::id());
    let finished = finish(&script(&format!("{mark} & echo begun")));
    assert_eq!(finished.ended, Ended::Itself);
    assert_eq!(finished.stdout, b"begun\n");
    let mark = mark.replace(' ', "\0");
    // Killed it is; its reaping is init's affair.
    while !alive_with(&mark).is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn a_descendant_that_left_the_group_does_not_hold_the_run_open() {
    let seconds = format!("33{}", std::process::id());
    // It bears the name only after it has left the group.
    let finished = finish(&script(&format!(
        "setsid sleep {seconds} & until grep -q sleep /proc/$!/comm; do :; done; echo begun"
    )));
    assert_eq!(finished.ended, Ended::Itself);
    assert_eq!(finished.stdout, b"begun\n");
    let left = alive_with(&format!("sleep\0{seconds}"));
    for pid in &left {
        kill(Pid::from_raw(pid.parse().unwrap()), Signal::SIGKILL).unwrap();
    }
    assert_eq!(left.len(), 1, "unsupervised, it lives on");
}

#[test]
fn a_descendant_that_keeps_writing_does_not_hold_the_run_open() {
    let finished = finish(&script(
        "setsid yes >&2 & until grep -q yes /proc/$!/comm; do :; done; echo begun",
    ));
    assert_eq!(finished.stdout, b"begun\n");
    assert_eq!(finished.stderr.len(), STDERR_TAIL);
}

#[test]
fn runs_leave_no_descriptors_behind() {
    let count = || fs::read_dir("/proc/self/fd").unwrap().count();
    let mut program = script("exec <&-; sleep 0.05");
    program.stdin = vec![0; 1 << 20];
    let before = count();
    for _ in 0..30 {
        finish(&program);
    }
    // Other tests of this process open files at the same time, but far fewer than ninety.
    assert!(count() < before + 60);
}

#[test]
fn what_cannot_be_started_is_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let message = |executable: PathBuf| {
        let mut program = script("");
        program.executable = executable;
        run(&program, &Stop::new()).unwrap_err().to_string()
    };
    let missing = message("no-such-engine".into());
    assert!(
        missing.contains("no-such-engine: not found in PATH (/usr/bin:/bin)"),
        "{missing}"
    );
    assert!(message(folder.path().join("gone")).contains("No such file"));
    assert!(message(place("plain", "#!/bin/sh\n", 0o644)).contains("not an executable file"));
    assert!(message(folder.path().to_owned()).contains("not an executable file"));
    assert!(message(place("lost", "#!/no/such/shell\n", 0o755)).contains("interpreter"));
    assert!(message(place("odd", "\x01\x02\x03", 0o755)).contains("#! line"));
    let busy = place("busy", "#!/bin/sh\n", 0o755);
    let _writer = fs::OpenOptions::new().append(true).open(&busy).unwrap();
    assert!(message(busy).contains("open for writing"));
    let mut program = script("true");
    program.directory = folder.path().join("nowhere");
    let text = run(&program, &Stop::new()).unwrap_err().to_string();
    assert!(text.contains("working directory"), "{text}");
}
