//! Stores that another tool wrote open here, and files that are no stores are left as they are.
//!
//! The stores are in `pr-review-agent-stores` of the folder that `PRWARDEN_SHARED` names, or of
//! `../shared`; without that folder their tests are skipped.

// Clippy's exceptions for tests don't reach the helpers of an integration test.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use prwarden::clock::Timestamp;
use prwarden::ids::{OwnerName, RepoName};
use prwarden::store::watermarks::{self, Stream};
use prwarden::store::{NEWEST, Store, StoreError, queue};
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

/// What the folder's README says of a store after the upgrade.
#[derive(Debug, PartialEq, Eq)]
struct Numbers {
    ledger: i64,
    charged: i64,
    open: i64,
    lost: i64,
    queue: BTreeMap<String, i64>,
    runs: i64,
    etags: i64,
}

fn wanted(version: u32) -> Numbers {
    let queue = |counts: &[(&str, i64)]| {
        let owned = counts.iter().map(|(status, n)| ((*status).to_owned(), *n));
        owned.collect()
    };
    let early = |waiting: &[(&str, i64)], etags| Numbers {
        ledger: 0,
        charged: 0,
        open: 0,
        lost: 0,
        queue: queue(waiting),
        runs: 0,
        etags,
    };
    let full = |ledger, charged, lost| Numbers {
        ledger,
        charged,
        open: 1,
        lost,
        queue: queue(&[
            ("pending", 2),
            ("claimed", 1),
            ("done", 2),
            ("abandoned", 1),
        ]),
        runs: 2,
        etags: 2,
    };
    match version {
        0 => early(&[], 0),
        1 => early(&[], 1),
        2..=7 => early(&[("pending", 1)], 1),
        9..=12 => full(17, 366_945, 2),
        15..=19 => full(15, 246_945, 0),
        other => panic!("the numbers of v{other:02}.db are not known here"),
    }
}

/// The unqualified watermarks that a store of this version carries.
fn unqualified(version: u32) -> &'static [&'static str] {
    match version {
        0 => &["comments"],
        1..=7 => &["pull_requests"],
        9 => &["comments", "pull_requests"],
        _ => &[],
    }
}

/// The stores of the shared folder with their versions; empty when there is no such folder.
fn shared_stores() -> Vec<(u32, PathBuf)> {
    let shared = std::env::var_os("PRWARDEN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"),
        PathBuf::from,
    );
    let folder = shared.join("pr-review-agent-stores");
    let Ok(entries) = fs::read_dir(&folder) else {
        println!("skipped: there is no {}", folder.display());
        return Vec::new();
    };
    let mut stores: Vec<(u32, PathBuf)> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "db"))
        .map(|path| {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            (stem.trim_start_matches('v').parse().unwrap(), path)
        })
        .collect();
    stores.sort();
    assert!(!stores.is_empty(), "{} is empty", folder.display());
    stores
}

/// A copy that may be written, in a directory of its own.
struct Copy {
    _dir: TempDir,
    path: PathBuf,
}

impl Copy {
    fn of(original: &Path) -> Self {
        Self::holding(&fs::read(original).unwrap())
    }

    fn holding(bytes: &[u8]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        fs::write(&path, bytes).unwrap();
        Self { _dir: dir, path }
    }

    fn open(&self) -> Store {
        Store::open(&self.path).unwrap()
    }

    fn backup(&self, version: u32) -> PathBuf {
        self.path
            .with_file_name(format!("state.db.v{version:02}.bak"))
    }

    /// The names beside the store, itself included.
    fn files(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.path.parent().unwrap()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    /// The error of opening it, after which nothing may have changed.
    fn refused(&self) -> StoreError {
        let before = fs::read(&self.path).unwrap();
        let error = match Store::open(&self.path) {
            Ok(_) => panic!("it was opened"),
            Err(error) => error,
        };
        assert!(fs::read(&self.path).unwrap() == before, "changed: {error}");
        assert_eq!(
            self.files(),
            BTreeSet::from(["state.db".to_owned()]),
            "{error}"
        );
        let text = error.to_string();
        assert!(text.contains(self.path.to_str().unwrap()), "{text}");
        assert!(!text.contains('\n'), "{text}");
        error
    }
}

/// Looks at a file without changing it.
fn look(path: &Path) -> Connection {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap()
}

fn number(connection: &Connection, sql: &str) -> i64 {
    connection.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn texts(connection: &Connection, sql: &str) -> Vec<String> {
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

fn numbers(connection: &Connection) -> Numbers {
    let number = |sql| number(connection, sql);
    let mut statement = connection
        .prepare("SELECT status, count(*) FROM queue GROUP BY status")
        .unwrap();
    let queue = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    Numbers {
        ledger: number("SELECT count(*) FROM ledger"),
        charged: number(
            "SELECT coalesce(sum(coalesce(used_tokens, reserved_tokens)), 0) FROM ledger",
        ),
        open: number("SELECT count(*) FROM ledger WHERE settled_at IS NULL"),
        lost: number("SELECT count(*) FROM ledger WHERE stop_reason = 'lost'"),
        queue,
        runs: number("SELECT count(*) FROM runs"),
        etags: number("SELECT count(*) FROM etags"),
    }
}

/// Every column and index of every table, without their order.
fn schema(connection: &Connection) -> BTreeSet<String> {
    let columns = "SELECT t.name || '.' || c.name || ' ' || c.type || ' notnull ' || c.\"notnull\" \
                   || ' default ' || coalesce(c.dflt_value, '-') || ' key ' || c.pk \
                   FROM sqlite_schema AS t, pragma_table_info(t.name) AS c \
                   WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let indexes = "SELECT i.name || ' on ' || t.name || ' unique ' || i.\"unique\" || ' partial ' \
                   || i.partial || ': ' || (SELECT group_concat(name) FROM pragma_index_info(i.name)) \
                   FROM sqlite_schema AS t, pragma_index_list(t.name) AS i \
                   WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";
    let mut all: BTreeSet<String> = texts(connection, columns).into_iter().collect();
    all.extend(texts(connection, indexes));
    all
}

fn repo(name: &str) -> RepoName {
    name.parse().unwrap()
}

fn watermark(store: &mut Store, stream: Stream, name: &str) -> Option<Timestamp> {
    store
        .read(|txn| watermarks::get(txn, stream, &repo(name)))
        .unwrap()
}

// --- Stores of pr-review-agent ---

#[test]
fn every_released_store_opens_with_all_that_it_holds() {
    for (version, original) in shared_stores() {
        let copy = Copy::of(&original);
        let mut store = copy.open();
        assert_eq!(store.version().unwrap(), NEWEST, "v{version:02}");
        assert_eq!(store.check().unwrap(), [], "v{version:02}");
        drop(store);
        assert_eq!(numbers(&look(&copy.path)), wanted(version), "v{version:02}");
    }
}

#[test]
fn every_upgraded_store_has_the_columns_and_indexes_of_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let fresh = dir.path().join("fresh.db");
    drop(Store::open(&fresh).unwrap());
    let fresh = schema(&look(&fresh));
    assert!(
        fresh
            .iter()
            .any(|line| line.starts_with("queue_live on queue"))
    );
    for (version, original) in shared_stores() {
        let copy = Copy::of(&original);
        drop(copy.open());
        let found = schema(&look(&copy.path));
        let missing: Vec<_> = fresh.difference(&found).collect();
        let extra: Vec<_> = found.difference(&fresh).collect();
        assert!(
            missing.is_empty() && extra.is_empty(),
            "v{version:02} lacks {missing:#?} and has {extra:#?}"
        );
    }
}

#[test]
fn a_copy_from_before_the_upgrade_is_kept() {
    for (version, original) in shared_stores() {
        let copy = Copy::of(&original);
        drop(copy.open());
        let backup = copy.backup(version);
        let mode = fs::metadata(&backup).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", backup.display());
        let (old, kept) = (look(&original), look(&backup));
        assert_eq!(number(&kept, "PRAGMA user_version"), i64::from(version));
        assert_eq!(schema(&kept), schema(&old), "v{version:02}");
        for table in texts(&old, "SELECT name FROM sqlite_schema WHERE type = 'table'") {
            let count = format!("SELECT count(*) FROM \"{table}\"");
            assert_eq!(number(&kept, &count), number(&old, &count), "{table}");
        }
    }
}

#[test]
fn opening_an_upgraded_store_again_changes_nothing() {
    for (version, original) in shared_stores() {
        let copy = Copy::of(&original);
        drop(copy.open());
        let (bytes, files) = (fs::read(&copy.path).unwrap(), copy.files());
        drop(copy.open());
        drop(Store::open_existing(&copy.path).unwrap());
        assert!(fs::read(&copy.path).unwrap() == bytes, "v{version:02}");
        assert_eq!(copy.files(), files, "v{version:02}");
    }
}

#[test]
fn a_command_that_must_not_upgrade_a_store_does_not() {
    for (version, original) in shared_stores() {
        let copy = Copy::of(&original);
        let error = Store::open_existing(&copy.path).unwrap_err();
        assert!(
            matches!(error, StoreError::TooOld { found, .. } if found == version),
            "{error}"
        );
        assert_eq!(
            number(&look(&copy.path), "PRAGMA user_version"),
            i64::from(version)
        );
    }
}

#[test]
fn watermarks_without_a_repository_are_adopted_once() {
    for (version, original) in shared_stores() {
        let copy = Copy::of(&original);
        let old = look(&original);
        let mut store = copy.open();
        let mut adopt = |name| {
            store
                .write(|txn| watermarks::adopt_unqualified(txn, &repo(name)))
                .unwrap()
        };
        assert_eq!(adopt("acme/widgets"), !unqualified(version).is_empty());
        assert!(!adopt("acme/gadgets"), "v{version:02}");
        assert!(!adopt("acme/widgets"), "v{version:02}");
        for (stream, name) in [
            (Stream::PullRequests, "pull_requests"),
            (Stream::Comments, "comments"),
        ] {
            let sql = format!(
                "SELECT at FROM watermarks WHERE name IN ('{name}', '{name}:acme/widgets')"
            );
            let before: Vec<Timestamp> = texts(&old, &sql)
                .iter()
                .map(|at| at.parse().unwrap())
                .collect();
            let carried = unqualified(version).contains(&name) || version >= 10;
            assert_eq!(!before.is_empty(), carried, "v{version:02} {name}");
            let found = watermark(&mut store, stream, "acme/widgets");
            assert_eq!(found, before.into_iter().max(), "v{version:02} {name}");
            assert_eq!(watermark(&mut store, stream, "acme/gadgets"), None);
        }
        drop(store);
        let left = "SELECT count(*) FROM watermarks WHERE name NOT LIKE '%:%'";
        assert_eq!(number(&look(&copy.path), left), 0, "v{version:02}");
    }
}

#[test]
fn the_work_and_the_runs_of_an_old_store_can_be_read() {
    for (version, original) in shared_stores() {
        let copy = Copy::of(&original);
        let mut store = copy.open();
        let keys = texts(&look(&original), "SELECT name FROM sqlite_schema");
        let has = |table: &str| keys.iter().any(|name| name == table);
        let mut claimable = Vec::new();
        let request = queue::Claimable {
            repos: &[repo("acme/widgets")],
            max_attempts: 3,
            now: "2100-01-01T00:00:00Z".parse().unwrap(),
        };
        store
            .write(|txn| {
                queue::walk(txn, request, |row| {
                    claimable.push(row.unwrap().key);
                    Ok(None::<()>)
                })
            })
            .unwrap();
        let queue = wanted(version).queue;
        let live = ["pending", "claimed"].map(|status| queue.get(status).unwrap_or(&0));
        assert_eq!(claimable.len() as i64, live[0] + live[1], "v{version:02}");
        if has("runs") {
            let runs = texts(&look(&original), "SELECT dedupe_key FROM runs");
            for key in runs {
                let key = prwarden::ids::DedupeKey::from_stored(key);
                let run = store
                    .read(|txn| prwarden::store::runs::get(txn, &key))
                    .unwrap();
                assert!(run.is_some(), "v{version:02} {key}");
            }
        }
        let taken = claimable.first().map(|key| {
            let by = OwnerName("w1".to_owned());
            store
                .write(|txn| {
                    queue::lease(txn, key, &by, request.now)?;
                    queue::complete(txn, key, &by)
                })
                .unwrap()
        });
        assert_ne!(taken, Some(false), "v{version:02}");
    }
}

// --- Upgrades that are cut short ---

/// A store at version 1 that holds something. `also` is run in it.
fn first_version(also: &str) -> Copy {
    Copy::holding(&database(&format!(
        "CREATE TABLE etags (path TEXT PRIMARY KEY, etag TEXT NOT NULL);
         CREATE TABLE watermarks (name TEXT PRIMARY KEY, at TEXT NOT NULL);
         INSERT INTO etags VALUES ('/x', 'e');
         {also};
         PRAGMA user_version = 1"
    )))
}

#[test]
fn a_migration_that_fails_leaves_the_version_before_it_and_no_part_of_itself() {
    // The second statement of the second migration meets an index of the same name.
    let copy = first_version("CREATE INDEX queue_claimable ON etags (etag)");
    for _ in 0..3 {
        let text = Store::open(&copy.path).unwrap_err().to_string();
        assert!(text.contains(copy.path.to_str().unwrap()), "{text}");
        let found = look(&copy.path);
        assert_eq!(number(&found, "PRAGMA user_version"), 1);
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
        assert_eq!(texts(&found, tables), ["etags", "watermarks"]);
    }
    let backups = || {
        let names = copy.files().into_iter();
        names
            .filter(|name| name.ends_with("bak"))
            .collect::<Vec<_>>()
    };
    assert_eq!(backups(), ["state.db.v01.bak"], "one copy is enough");
    let repair = Connection::open(&copy.path).unwrap();
    repair.execute_batch("DROP INDEX queue_claimable").unwrap();
    drop(repair);
    assert_eq!(copy.open().version().unwrap(), NEWEST);
    assert_eq!(backups(), ["state.db.v01.2.bak", "state.db.v01.bak"]);
}

#[test]
fn a_store_that_was_put_back_and_used_is_copied_again_before_it_is_upgraded() {
    let copy = first_version("SELECT 1");
    drop(copy.open());
    fs::copy(copy.backup(1), &copy.path).unwrap();
    let old_program = Connection::open(&copy.path).unwrap();
    old_program
        .execute("INSERT INTO etags VALUES ('/later', 'e')", [])
        .unwrap();
    drop(old_program);
    drop(copy.open());
    let etags = |path: &Path| texts(&look(path), "SELECT path FROM etags ORDER BY path");
    assert_eq!(etags(&copy.backup(1)), ["/x"], "it is not replaced");
    let second = copy.path.with_file_name("state.db.v01.2.bak");
    assert_eq!(etags(&second), ["/later", "/x"]);
}

#[test]
fn what_a_copy_that_was_cut_short_left_is_not_taken_for_a_copy() {
    let copy = first_version("SELECT 1");
    fs::write(copy.backup(1), "").unwrap();
    fs::write(copy.path.with_file_name("state.db.v01.bak.partial"), "half").unwrap();
    drop(copy.open());
    let kept = look(&copy.backup(1));
    assert_eq!(number(&kept, "PRAGMA user_version"), 1);
    assert_eq!(texts(&kept, "SELECT path FROM etags"), ["/x"]);
    assert!(!copy.files().iter().any(|name| name.ends_with("partial")));
}

#[test]
fn a_copy_whose_writing_was_killed_is_kept_apart_and_not_compared_with() {
    let copy = first_version("SELECT 1");
    fs::write(copy.backup(1), "half").unwrap();
    fs::write(copy.path.with_file_name("state.db.v01.bak-journal"), "x").unwrap();
    drop(copy.open());
    assert_eq!(fs::read(copy.backup(1)).unwrap(), b"half");
    let second = look(&copy.path.with_file_name("state.db.v01.2.bak"));
    assert_eq!(texts(&second, "SELECT path FROM etags"), ["/x"]);
}

#[test]
fn an_upgrade_that_is_killed_at_any_moment_is_finished_by_the_next_start() {
    let mut original = first_version("SELECT 1");
    let mut whole = None;
    if let Some((version, path)) = shared_stores().into_iter().find(|(v, _)| *v == 9) {
        original = Copy::of(&path);
        whole = Some(wanted(version));
    }
    let version = number(&look(&original.path), "PRAGMA user_version") as u32;
    let bytes = fs::read(&original.path).unwrap();
    let mut reached = BTreeSet::new();
    let log = |copy: &Copy| copy.path.with_file_name("state.db-wal");
    for delay in 0..60 {
        let copy = Copy::holding(&bytes);
        let mut child = migrate(&copy.path).spawn().unwrap();
        // The upgrade begins with the write-ahead log.
        while !log(&copy).exists() && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        std::thread::sleep(delay * Duration::from_millis(1));
        child.kill().unwrap();
        child.wait().unwrap();
        // A connection that may write, because the log of what was killed has to be read.
        let after = Connection::open(&copy.path).unwrap();
        assert_eq!(texts(&after, "PRAGMA integrity_check"), ["ok"]);
        reached.insert(number(&after, "PRAGMA user_version"));
        drop(after);
        let mut store = copy.open();
        assert_eq!(store.version().unwrap(), NEWEST, "killed after {delay} ms");
        assert_eq!(store.check().unwrap(), [], "killed after {delay} ms");
        drop(store);
        if let Some(whole) = &whole {
            assert_eq!(&numbers(&look(&copy.path)), whole);
        }
        let kept = look(&copy.backup(version));
        assert_eq!(number(&kept, "PRAGMA user_version"), i64::from(version));
    }
    println!("killed at the versions {reached:?}");
}

// --- Disks that can't be written ---

/// `prwarden db migrate` of the store.
fn migrate(path: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_prwarden"));
    command
        .args(["db", "migrate", "--store"])
        .arg(path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the shell script over a directory `$D` that is a disk of its own, in a mount namespace that
/// ends with it. `migrate` is `prwarden db migrate`. `None` where the system forbids namespaces.
fn on_a_small_disk(old: &Path, script: &str) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let prelude = "set -eu; mount -t tmpfs -o size=10m,mode=0700 small \"$D\"; \
                   resize() { mount -o remount,\"$1\" \"$D\"; }; \
                   migrate() { \"$PRWARDEN\" db migrate --store \"$D/state.db\" 2>&1 || true; };";
    let run = |script: &str| {
        Command::new("unshare")
            .args(["--map-root-user", "--mount", "sh", "-c", script])
            .env("D", dir.path())
            .env("OLD", old)
            .env("PRWARDEN", env!("CARGO_BIN_EXE_prwarden"))
            .output()
    };
    if !run(prelude).is_ok_and(|output| output.status.success()) {
        println!("skipped: this system lets nobody mount a disk in a namespace");
        return None;
    }
    let output = run(&format!("{prelude} {script}")).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    Some(text.replace(dir.path().to_str().unwrap(), "DISK"))
}

#[test]
fn a_full_disk_is_named_and_nothing_is_upgraded_without_a_whole_copy() {
    let old = first_version("CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(60000))");
    // From too small for anything but the store to just too small for the copy.
    for size in ["88k", "100k", "120k", "140k", "160k"] {
        let script = format!(
            "cp \"$OLD\" \"$D/state.db\"; resize size={size}; migrate; \
             test ! -s \"$D/state.db.v01.bak\" && echo no copy; \
             resize size=10m; migrate; cmp -s \"$D/state.db.v01.bak\" /dev/null || echo copied; \
             cat \"$D/state.db.v01.bak\" | head -c 15"
        );
        let Some(text) = on_a_small_disk(&old.path, &script) else {
            return;
        };
        let lines: Vec<&str> = text.lines().collect();
        let full = lines[0].strip_suffix(" can't be written: the disk is full");
        assert!(
            full.is_some_and(|line| line.starts_with("prwarden: DISK/state.db")),
            "{size}: {text}"
        );
        let rest = [
            "no copy".to_owned(),
            format!("DISK/state.db is at version {NEWEST}"),
            "copied".to_owned(),
            "SQLite format 3".to_owned(),
        ];
        assert_eq!(lines[1..], rest, "{size}");
    }
}

#[test]
fn a_new_store_on_a_full_disk_says_that_the_disk_is_full() {
    for size in ["4k", "16k", "32k", "64k", "96k"] {
        let script = format!("resize size={size}; : > \"$D/state.db\"; migrate");
        let Some(text) = on_a_small_disk(Path::new("/dev/null"), &script) else {
            return;
        };
        let wanted = "prwarden: DISK/state.db can't be written: the disk is full\n";
        assert_eq!(text, wanted, "{size}");
    }
}

#[test]
fn a_read_only_disk_is_named_for_old_and_for_upgraded_stores() {
    let old = first_version("SELECT 1");
    for first in ["", "migrate > /dev/null;"] {
        let script = format!("cp \"$OLD\" \"$D/state.db\"; {first} resize ro; migrate");
        let Some(text) = on_a_small_disk(&old.path, &script) else {
            return;
        };
        let lines: BTreeSet<&str> = text.lines().collect();
        let wanted = "prwarden: DISK/state.db can't be written: it or its file system is read-only";
        assert_eq!(lines, BTreeSet::from([wanted]), "{first}");
    }
}

// --- Files that are not opened ---

/// The bytes of a closed store of this program.
fn new_store() -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    drop(Store::open(&path).unwrap());
    fs::read(&path).unwrap()
}

/// The bytes of a closed database in which `sql` was run.
fn database(sql: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
    fs::read(&path).unwrap()
}

#[test]
fn a_store_of_a_newer_program_is_refused_with_both_numbers() {
    let newer = NEWEST + 1;
    let mut bytes = new_store();
    // SQLite keeps user_version in the header's bytes 60 to 63.
    bytes[60..64].copy_from_slice(&newer.to_be_bytes());
    for journal in [[1, 1], [2, 2]] {
        bytes[18..20].copy_from_slice(&journal);
        let copy = Copy::holding(&bytes);
        let error = copy.refused();
        assert!(matches!(error, StoreError::TooNew { found, .. } if found == newer));
        let text = error.to_string();
        assert!(text.contains(&format!("is at version {newer},")), "{text}");
        assert!(
            text.contains(&format!("versions up to {NEWEST};")),
            "{text}"
        );
        let error = Store::open_existing(&copy.path).unwrap_err();
        assert!(matches!(error, StoreError::TooNew { .. }), "{error}");
        assert!(fs::read(&copy.path).unwrap() == bytes);
    }
}

#[test]
fn the_database_of_another_program_is_refused_and_not_changed() {
    for sql in [
        "CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('mine')",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = 7",
        "CREATE TABLE notes (text TEXT); PRAGMA user_version = 21",
        "PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT)",
    ] {
        let copy = Copy::holding(&database(sql));
        let error = copy.refused();
        assert!(
            matches!(error, StoreError::Foreign { .. }),
            "{sql}: {error}"
        );
        assert!(
            error.to_string().contains("is not a prwarden store"),
            "{error}"
        );
    }
}

#[test]
fn a_text_file_is_refused_and_not_changed() {
    for bytes in [
        &b"key = 1\n"[..],
        b"SQLite format 2\0",
        b"\0",
        &[b'x'; 10_000],
    ] {
        let error = Copy::holding(bytes).refused();
        assert!(matches!(error, StoreError::Foreign { .. }), "{error}");
    }
}

#[test]
fn a_truncated_store_is_refused_and_not_changed() {
    let mut stores = vec![new_store()];
    for (_, original) in shared_stores() {
        stores.push(fs::read(original).unwrap());
    }
    for bytes in stores {
        let all = bytes.len();
        for kept in [16, 50, 100, 511, 512, 1_000, 4_096, all / 2, all - 4_096] {
            let error = Copy::holding(&bytes[..kept]).refused();
            assert!(
                matches!(
                    error,
                    StoreError::Corrupt { .. } | StoreError::Foreign { .. }
                ),
                "{kept} of {all} bytes: {error}"
            );
        }
    }
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let copy = Copy::holding(&new_store());
    fs::set_permissions(&copy.path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&copy.path).is_ok() {
        println!("skipped: this user may read everything");
        return;
    }
    let error = Store::open(&copy.path).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.starts_with(&format!("cannot read {}: ", copy.path.display())),
        "{text}"
    );
}

#[test]
fn a_directory_in_place_of_a_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    fs::create_dir(&path).unwrap();
    let text = Store::open(&path).unwrap_err().to_string();
    assert!(
        text.starts_with(&format!("cannot read {}: ", path.display())),
        "{text}"
    );
    assert!(fs::read_dir(&path).unwrap().next().is_none());
}

#[test]
fn a_store_in_a_directory_that_everybody_may_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let error = Store::open(&open.join("state.db")).unwrap_err();
    assert!(matches!(error, StoreError::OpenDirectory { .. }), "{error}");
    assert!(fs::read_dir(&open).unwrap().next().is_none());
    let missing = dir.path().join("missing/state.db");
    let text = Store::open(&missing).unwrap_err().to_string();
    assert!(text.starts_with("cannot use the directory "), "{text}");
}

#[test]
fn a_store_that_everybody_may_write_is_refused() {
    let copy = Copy::holding(&new_store());
    fs::set_permissions(&copy.path, fs::Permissions::from_mode(0o666)).unwrap();
    let error = copy.refused();
    assert!(matches!(error, StoreError::OpenFile { .. }), "{error}");
    assert!(error.to_string().contains("(mode 666)"), "{error}");
    fs::set_permissions(&copy.path, fs::Permissions::from_mode(0o600)).unwrap();
    copy.open();
}

#[test]
fn a_new_store_may_be_opened_by_many_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    std::thread::scope(|scope| {
        let opens: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| Store::open(&path).map(drop)))
            .collect();
        for open in opens {
            open.join().unwrap().unwrap();
        }
    });
    assert_eq!(Store::open(&path).unwrap().version().unwrap(), NEWEST);
}
