//! Several processes on one store: an authority and others that comply with its limits.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::process::{Command, Output};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{MONA, REPO, Running, World, eventually, pull};

const OTHER: &str = "acme/gadgets";

/// A world with two repositories, an engine that tells no usage, and a configuration for each.
struct Pool {
    world: World,
    engine: String,
}

impl Pool {
    fn new() -> Self {
        let world = World::new();
        world.double.add_repo(OTHER, world.git.path());
        let script =
            "#!/bin/sh\n\"$PRWARDEN\" sample-engine | sed 's/\"usage\":{[^}]*}/\"usage\":null/'\n";
        let engine = format!(
            "[engine]\nkind = \"command\"\ncommand = [\"{}\"]\nenv = [\"PRWARDEN\"]\n\
             [poll]\nfloor_seconds = 1\nceiling_seconds = 1\n[worker]\ncount = 2\n",
            world.script("engine", script).display()
        );
        Self { world, engine }
    }

    /// Writes the configuration `file` for `repo` with these keys of `[budget]`.
    fn configure(&self, file: &str, repo: &str, budget: &str) {
        self.world
            .configure(&format!("{}[budget]\n{budget}", self.engine));
        let usual = self.world.path("prwarden.toml");
        let text = fs::read_to_string(&usual).unwrap();
        let text = text.replace(&format!("\"{REPO}\""), &format!("\"{repo}\""));
        fs::write(self.world.path(file), text).unwrap();
    }

    fn command(&self, file: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_prwarden"));
        command
            .args(args)
            .arg("--config")
            .arg(self.world.path(file))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("GITHUB_TOKEN", support::TOKEN)
            .env("PRWARDEN", env!("CARGO_BIN_EXE_prwarden"))
            .current_dir(self.world.dir.path());
        command
    }

    fn once(&self, file: &str) -> Output {
        self.command(file, &["once"]).output().unwrap()
    }

    fn run(&self, file: &str) -> Running {
        let log = fs::File::create(self.world.path(&format!("{file}.log"))).unwrap();
        let mut command = self.command(file, &["run"]);
        Running(command.stderr(log).spawn().unwrap())
    }

    fn log(&self, file: &str) -> String {
        fs::read_to_string(self.world.path(&format!("{file}.log"))).unwrap()
    }

    /// Opens a pull request on the other repository.
    fn open(&self, branch: &str) -> i64 {
        self.world.branch(branch, &[("a.txt", "a\n")]);
        self.world.double.open_pull(OTHER, pull(MONA.1, branch))
    }

    fn reviews(&self, number: i64) -> usize {
        let ours = |comment: &prwarden::double::Comment| comment.author == support::BOT.1;
        let comments = self.world.double.comments(OTHER, number);
        comments.into_iter().filter(ours).count()
    }
}

/// 40 % of the session are `runs` runs of 100,000 tokens.
fn limits(runs: u32) -> String {
    format!(
        "session_tokens = \"{}k\"\nweekly_tokens = \"100m\"\nmax_run_tokens = \"100k\"\n",
        runs * 250
    )
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_second_authority_is_refused_until_the_first_steps_down() {
    let pool = Pool::new();
    let authority = format!("authority = true\n{}", limits(2));
    pool.configure("one.toml", REPO, &authority);
    pool.configure("two.toml", OTHER, &authority);
    assert_eq!(pool.once("one.toml").status.code(), Some(0));
    let second = pool.once("two.toml");
    assert_eq!(second.status.code(), Some(78), "{}", text(&second));
    assert!(text(&second).contains("the process of acme/widgets is the authority"));
    assert!(text(&second).contains("authority = false"), "the remedy");
    pool.configure("one.toml", REPO, "authority = false\n");
    assert_eq!(pool.once("one.toml").status.code(), Some(0));
    let successor = pool.once("two.toml");
    assert_eq!(successor.status.code(), Some(0), "{}", text(&successor));
}

#[test]
fn who_complies_ends_with_3_without_limits_and_starts_once_there_are_some() {
    let pool = Pool::new();
    pool.configure(
        "one.toml",
        REPO,
        &format!("authority = true\n{}", limits(2)),
    );
    pool.configure("two.toml", OTHER, "authority = false\n");
    for command in ["once", "run"] {
        let early = pool.command("two.toml", &[command]).output().unwrap();
        assert_eq!(early.status.code(), Some(3), "{}", text(&early));
        assert!(
            text(&early).contains("budget.authority = true"),
            "the remedy"
        );
    }
    assert_eq!(pool.once("one.toml").status.code(), Some(0));
    assert_eq!(pool.once("two.toml").status.code(), Some(0));
    let number = pool.open("two");
    let cycle = pool.once("two.toml");
    assert_eq!(cycle.status.code(), Some(0), "{}", text(&cycle));
    assert_eq!(pool.reviews(number), 1);
}

#[test]
fn an_authoritys_reload_reaches_a_running_process_that_complies() {
    let pool = Pool::new();
    pool.configure(
        "one.toml",
        REPO,
        &format!("authority = true\n{}", limits(1)),
    );
    let authority = pool.run("one.toml");
    eventually("the limits are published", || {
        pool.world.store().exists() && pool.log("one.toml").contains("watching")
    });
    pool.configure("two.toml", OTHER, "authority = false\n");
    let member = pool.run("two.toml");
    eventually("both work on one store", || {
        pool.log("two.toml").contains("watching") && pool.world.double.requests().len() > 5
    });
    let first = pool.open("two");
    eventually("the only run that fits", || pool.reviews(first) == 1);
    let second = pool.open("three");
    eventually("the rest waits", || {
        pool.log("two.toml").contains("nothing that spends starts")
    });
    assert_eq!(pool.reviews(second), 0);
    pool.configure(
        "one.toml",
        REPO,
        &format!("authority = true\n{}", limits(3)),
    );
    kill(Pid::from_raw(authority.0.id() as i32), Signal::SIGHUP).unwrap();
    eventually("the reload", || pool.log("one.toml").contains("reloaded"));
    let third = pool.open("four");
    eventually("both have room", || {
        pool.reviews(second) == 1 && pool.reviews(third) == 1
    });
    let told = pool.log("two.toml");
    assert_eq!(
        told.matches("nothing that spends starts").count(),
        1,
        "{told}"
    );
    drop(member);
}

#[test]
fn a_process_that_shares_with_nobody_keeps_its_store_to_itself() {
    let pool = Pool::new();
    pool.configure(
        "one.toml",
        REPO,
        &format!("authority = true\n{}", limits(1)),
    );
    pool.configure("alone.toml", OTHER, &limits(1));
    let running = pool.run("one.toml");
    eventually("it runs", || pool.log("one.toml").contains("watching"));
    assert_eq!(pool.once("alone.toml").status.code(), Some(75));
    pool.configure(
        "twin.toml",
        REPO,
        &format!("authority = true\n{}", limits(1)),
    );
    assert_eq!(
        pool.once("twin.toml").status.code(),
        Some(75),
        "the same name"
    );
    drop(running);
    assert_eq!(pool.once("alone.toml").status.code(), Some(0));
}
