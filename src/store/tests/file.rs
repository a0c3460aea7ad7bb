//! The file itself: private, durable, shared with other connections, copied.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn a_fault_inside_a_transaction_names_the_store_also_as_an_error_of_another_room() {
    #[derive(Debug, thiserror::Error)]
    #[error("the poll failed: {0}")]
    struct Other(#[from] StoreError);
    let mut shelf = Shelf::new();
    let mut inner = Shelf::new();
    let path = shelf.store.path().display().to_string();
    let wrong = |txn: &Txn<'_>| Ok::<_, StoreError>(txn.execute("UPDATE nothing SET x = 1", [])?);
    let text = shelf.fails(wrong);
    assert!(text.starts_with(&format!("the store {path}: ")), "{text}");
    let result = shelf.store.write(|txn| {
        // A transaction on another store, ended before, is not taken for this one.
        inner.fails(wrong);
        wrong(txn).map_err(Other)
    });
    let text = result.unwrap_err().to_string();
    assert!(
        text.starts_with(&format!("the poll failed: the store {path}: ")),
        "{text}"
    );
}

#[test]
fn a_disk_that_fills_up_inside_a_transaction_is_named_with_the_store() {
    let mut shelf = Shelf::new();
    let path = shelf.store.path().display().to_string();
    shelf.write(|txn| Ok(txn.pragma_update(None, "max_page_count", 1)?));
    let error = shelf
        .store
        .write(|txn| {
            for number in 0..1_000 {
                etags::set(txn, &format!("/{number}"), &"x".repeat(1_000))?;
            }
            Ok::<_, StoreError>(())
        })
        .unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    let wanted = format!("{path} can't be written: the disk is full");
    assert_eq!(error.to_string(), wanted);
    assert_eq!(shelf.count("SELECT count(*) FROM etags"), 0);
    assert_eq!(shelf.store.check().unwrap(), []);
}

#[test]
fn a_store_that_another_process_holds_is_contention_and_not_a_fault() {
    let mut shelf = Shelf::new();
    let mut other = Store::open_existing(shelf.store.path()).unwrap();
    other.connection.busy_timeout(Duration::ZERO).unwrap();
    shelf.write(|_| {
        let error = other.write(|_| Ok::<_, StoreError>(())).unwrap_err();
        assert!(matches!(error, StoreError::Busy { .. }), "{error:?}");
        // Readers don't wait for a writer.
        other.read(|txn| etags::get(txn, "/x"))
    });
}

#[test]
fn every_connection_is_durable_and_waits_for_others() {
    let shelf = Shelf::new();
    let second = Store::open_existing(shelf.store.path()).unwrap();
    for store in [&shelf.store, &second] {
        let pragma = |name: &str| -> String {
            let sql = format!("SELECT CAST({name} AS TEXT) FROM pragma_{name}");
            store
                .connection
                .query_row(&sql, [], |row| row.get(0))
                .unwrap()
        };
        assert_eq!(pragma("journal_mode"), "wal");
        assert_eq!(pragma("synchronous"), "2", "FULL");
        assert_eq!(pragma("foreign_keys"), "1");
        let waits: i64 = store
            .connection
            .query_row("PRAGMA busy_timeout", [], |row| row.get(0))
            .unwrap();
        assert_eq!(waits, 5_000);
    }
}

#[test]
fn a_backup_ends_and_is_whole_while_another_connection_commits() {
    let mut shelf = Shelf::new();
    shelf.write(|txn| {
        for number in 0..16_000 {
            etags::set(txn, &format!("/{number}"), &"x".repeat(1_000))?;
        }
        etags::set(txn, "/left", "0")?;
        etags::set(txn, "/right", "0")
    });
    let path = shelf.store.path().to_owned();
    let to = path.with_file_name("copy.db");
    const MANY: u64 = 50_000;
    let (writing, stop) = (Barrier::new(2), AtomicBool::new(false));
    let commits = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut store = Store::open_existing(&path).unwrap();
            // As fast as can be: every commit is a chance to disturb the copy.
            let fast = store.connection.pragma_update(None, "synchronous", "OFF");
            fast.unwrap();
            for round in 1..=MANY {
                let text = round.to_string();
                store
                    .write(|txn| {
                        etags::set(txn, "/left", &text)?;
                        etags::set(txn, "/right", &text)
                    })
                    .unwrap();
                if round == 1 {
                    writing.wait();
                }
                if stop.load(Ordering::Relaxed) {
                    return round;
                }
            }
            MANY
        });
        writing.wait();
        let copied = shelf.store.backup(&to);
        stop.store(true, Ordering::Relaxed);
        copied.unwrap();
        writer.join().unwrap()
    });
    assert!(commits < MANY, "it ended only when the writer did");
    let mut copy = Store::open_existing(&to).unwrap();
    assert_eq!(copy.check().unwrap(), []);
    let mut get = |path| copy.read(|txn| etags::get(txn, path)).unwrap();
    assert_eq!(get("/left"), get("/right"), "it is one moment's view");
    assert_eq!(get("/15999").map(|etag| etag.len()), Some(1_000));
}

#[test]
fn a_backup_never_replaces_a_file() {
    let shelf = Shelf::new();
    let to = shelf.store.path().with_file_name("notes.txt");
    std::fs::write(&to, "mine").unwrap();
    let text = shelf.store.backup(&to).unwrap_err().to_string();
    assert!(text.starts_with("cannot create "), "{text}");
    assert_eq!(std::fs::read(&to).unwrap(), b"mine");
}

#[test]
fn a_new_store_is_private_and_in_order() {
    use std::os::unix::fs::PermissionsExt;
    let mut shelf = Shelf::new();
    let mode = std::fs::metadata(shelf.store.path()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    assert_eq!(shelf.store.version().unwrap(), NEWEST);
    assert_eq!(shelf.store.check().unwrap(), []);
}

#[test]
fn a_command_that_must_not_create_a_store_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path: &Path = &dir.path().join("state.db");
    assert!(matches!(
        Store::open_existing(path),
        Err(StoreError::Missing { .. })
    ));
    assert!(!path.exists());
}

#[test]
fn an_error_takes_back_everything_of_its_transaction() {
    let mut shelf = Shelf::new();
    let new = mention(1, 7);
    let result = shelf.store.write(|txn| {
        queue::enqueue(txn, &new, start())?;
        watermarks::advance(txn, Stream::Comments, &widgets(), start())?;
        Err::<(), _>(StoreError::Busy { path: "x".into() })
    });
    assert!(result.is_err());
    assert_eq!(shelf.count("SELECT count(*) FROM queue"), 0);
    assert_eq!(shelf.count("SELECT count(*) FROM watermarks"), 0);
}

#[test]
fn a_backup_is_not_put_beside_a_journal_that_would_empty_it() {
    let shelf = Shelf::new();
    let to = shelf.store.path().with_file_name("copy.db");
    for end in ["-journal", "-wal", "-shm"] {
        let leftover = shelf.store.path().with_file_name(format!("copy.db{end}"));
        std::fs::write(&leftover, "old").unwrap();
        let error = shelf.store.backup(&to).unwrap_err();
        assert!(matches!(error, StoreError::Leftover { .. }), "{error:?}");
        assert!(error.to_string().contains(leftover.to_str().unwrap()));
        assert!(!to.exists());
        std::fs::remove_file(&leftover).unwrap();
    }
    shelf.store.backup(&to).unwrap();
}
