//! What the daemon costs when nothing happens, and how fast it is when something does.
//!
//! `cargo bench` prints one line for each figure; nothing is asserted, because machines differ. The
//! daemon under measurement is a process of its own; the GitHub double is in this one.

#![allow(clippy::unwrap_used)]
#![allow(clippy::print_stdout)] // The figures are its result.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prwarden::clock::{Clock, Stop, SystemClock, TestClock};
use prwarden::config::Config;
use prwarden::daemon::poller::{Poller, Start};
use prwarden::daemon::startup::start;
use prwarden::double::sample::RepoBuilder;
use prwarden::double::{Double, NewPull, UserKind};

const REPO: &str = "acme/widgets";
const CYCLES: u32 = 1000;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|arg| arg == "--idle") {
        return idle_cycles(Path::new(&args[at + 1]));
    }
    let dir = tempfile::tempdir().unwrap();
    let git = RepoBuilder::create(&dir.path().join("origin.git")).unwrap();
    git.commit("main", &[("a.txt", "a\n")], "Start").unwrap();
    git.branch("two", "main").unwrap();
    git.commit("two", &[("b.txt", "b\n")], "Change").unwrap();
    let double = Double::start().unwrap();
    double.add_user(101, "mona", UserKind::User);
    double.add_user(900, "prwarden-bot", UserKind::User);
    double.set_token("bench-token", "prwarden-bot");
    double.add_repo(REPO, git.path());
    let config = dir.path().join("prwarden.toml");
    let (url, home) = (double.url(), dir.path().display());
    fs::write(
        &config,
        format!(
            "[github]\napi_url = \"{url}\"\n[[repo]]\nname = \"{REPO}\"\n\
             [triggers]\nallowlist = [101]\n[poll]\nfloor_seconds = 1\nceiling_seconds = 1\n\
             [store]\npath = \"{home}/state.db\"\n[workspace]\ncache_dir = \"{home}/cache\"\n"
        ),
    )
    .unwrap();
    start_up();
    first_request(&double, &config);
    latency(&double, &config);
    double.clear_requests();
    let own = std::env::current_exe().unwrap();
    let idle = Command::new(own)
        .arg("--idle")
        .arg(&config)
        .env("GITHUB_TOKEN", "bench-token")
        .status();
    assert!(idle.unwrap().success());
}

fn daemon(config: &Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_prwarden"))
        .arg("--config")
        .arg(config)
        .arg("run")
        .env("GITHUB_TOKEN", "bench-token")
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_for(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "never happened");
        std::thread::sleep(Duration::from_micros(200));
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The whole process of a command that does nothing.
fn start_up() {
    let times = (0..21).map(|_| {
        let start = Instant::now();
        let run = Command::new(env!("CARGO_BIN_EXE_prwarden"))
            .arg("--version")
            .stdout(Stdio::null())
            .status();
        assert!(run.unwrap().success());
        start.elapsed()
    });
    println!(
        "prwarden --version, whole process: {:.1?} (median of 21)",
        median(times.collect())
    );
}

fn first_request(double: &Double, config: &Path) {
    let mut times = Vec::new();
    let mut memory = 0;
    for _ in 0..11 {
        double.clear_requests();
        let start = Instant::now();
        let mut child = daemon(config);
        wait_for(|| !double.requests().is_empty());
        times.push(start.elapsed());
        wait_for(|| double.requests().len() >= 3);
        std::thread::sleep(Duration::from_millis(100));
        memory = resident(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    println!(
        "start of the daemon to its first request: {:.1?} (median of 11)",
        median(times)
    );
    println!(
        "resident memory of the idle daemon: {:.1} MiB",
        memory as f64 / 1024.0
    );
}

/// From a person's comment to the posted review, with the built-in checks and a poll each second.
fn latency(double: &Double, config: &Path) {
    let new = NewPull {
        author: "mona".to_owned(),
        title: "Bench".to_owned(),
        body: String::new(),
        head_ref: "two".to_owned(),
        base_ref: "main".to_owned(),
        draft: false,
    };
    let mut child = daemon(config);
    double.clear_requests();
    wait_for(|| double.requests().len() >= 3);
    let number = double.open_pull(REPO, new);
    let reviews = || {
        let comments = double.comments(REPO, number);
        comments
            .iter()
            .filter(|comment| comment.author == "prwarden-bot")
            .count()
    };
    wait_for(|| reviews() == 1);
    let mut times = Vec::new();
    for round in 2..9 {
        std::thread::sleep(Duration::from_millis(1200));
        let start = Instant::now();
        double.comment(REPO, number, "mona", "@prwarden review");
        wait_for(|| reviews() == round);
        times.push(start.elapsed());
    }
    let fastest = times.iter().min().copied().unwrap_or_default();
    println!(
        "comment to posted review (poll each second, a second between writes): {:.0?} median, {:.0?} \
         fastest of 7",
        median(times),
        fastest
    );
    println!(
        "resident memory after 8 reviews: {:.1} MiB",
        resident(child.id()) as f64 / 1024.0
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

/// In a process of its own: polls as fast as it can on a clock that does not wait, and measures
/// itself.
fn idle_cycles(file: &Path) {
    let env = |name: &str| std::env::var(name).ok();
    let (config, _) = Config::load(file, &env).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(TestClock::at(SystemClock.now()));
    let started = start(config, clock, Stop::new(), Stop::new(), &env).unwrap();
    let mut store = prwarden::store::Store::open_existing(started.store.path()).unwrap();
    let cycle = |store: &mut _| {
        Poller::new(&started.context, Start::Cycle)
            .once(store)
            .unwrap()
    };
    for _ in 0..3 {
        assert_eq!(cycle(&mut store), 1);
    }
    let (memory, cpu, start) = (resident(std::process::id()), cpu_ticks(), Instant::now());
    for _ in 0..CYCLES {
        assert_eq!(cycle(&mut store), 1);
    }
    let spent = f64::from(u32::try_from(cpu_ticks() - cpu).unwrap()) * 10.0 / f64::from(CYCLES);
    println!(
        "an idle cycle (three 304s): {:.2} ms CPU, {:.2?} on the clock",
        spent,
        start.elapsed() / CYCLES
    );
    println!(
        "resident memory before and after {CYCLES} idle cycles: {:.1} and {:.1} MiB",
        memory as f64 / 1024.0,
        resident(std::process::id()) as f64 / 1024.0
    );
}

/// Resident memory in KiB (proc_pid_status(5)).
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// User and system time in hundredths of a second (proc_pid_stat(5)).
fn cpu_ticks() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}
