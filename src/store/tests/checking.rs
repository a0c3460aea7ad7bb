//! What `prwarden db check` finds.

use super::*;

#[test]
fn every_broken_invariant_is_found_and_names_its_row() {
    let key = automatic(1, 1).key;
    let name = key.as_str();
    for (break_it, what, place) in [
        (
            "UPDATE queue SET owner = NULL WHERE status = 'claimed'",
            "a claimed row has no lease",
            name,
        ),
        (
            "UPDATE queue SET status = 'done'",
            "a row that nobody works on has an owner",
            name,
        ),
        (
            "UPDATE queue SET command = 'summarize'",
            "a value can't be read",
            &format!("queue.command of {name}"),
        ),
        (
            "UPDATE runs SET findings = '{oops'",
            "a value can't be read",
            &format!("runs.findings of {name}"),
        ),
        (
            "UPDATE queue SET status = 'lost'",
            "a queue row has an unknown status",
            name,
        ),
        (
            "UPDATE ledger SET settled_at = reserved_at",
            "a settled ledger row has no usage",
            "key",
        ),
        (
            "UPDATE ledger SET reserved_tokens = -1",
            "an amount of the ledger is no amount",
            "key",
        ),
        (
            "UPDATE ledger SET used_tokens = 'lots'",
            "an amount of the ledger is no amount",
            "key",
        ),
        (
            "UPDATE ledger SET reserved_at = '2026-11-01T10:05:00+01:00'",
            "a moment does not sort, because it is not in UTC",
            "ledger.reserved_at of key",
        ),
        (
            "UPDATE watermarks SET at = '2026-11-01T09:05:00'",
            "a moment does not sort, because it is not in UTC",
            "watermarks.at of comments:acme/widgets",
        ),
        (
            "INSERT INTO watermarks VALUES ('comments', '2026-11-01T09:05:00Z')",
            "a watermark belongs to no repository though others do",
            "comments",
        ),
        (
            "INSERT INTO watermarks VALUES ('stars:acme/widgets', '2026-11-01T09:05:00Z')",
            "a watermark belongs to no known stream",
            "stars:acme/widgets",
        ),
        (
            "UPDATE runs SET published_at = recorded_at, nonce = 'n'",
            "a published run has no outcome",
            name,
        ),
        (
            "UPDATE queue SET kind = 'publish', dedupe_key = 'publish:none'",
            "a publication has no run",
            "publish:none",
        ),
        (
            "DROP INDEX ledger_open; INSERT INTO ledger (dedupe_key, owner, actor_id, mode, \
             reserved_tokens, reserved_at) VALUES ('key', 'w', 1, 'full', 1, '2026-11-01T09:05:00Z')",
            "a trigger has two open reservations",
            "key",
        ),
    ] {
        let mut shelf = Shelf::new();
        shelf.enqueue(&automatic(1, 1), start());
        shelf.lease(&key, "w1", later(30));
        reserve(&mut shelf, 100, 101, Role::Review, start());
        shelf.write(|txn| {
            runs::record(txn, &recorded(&key))?;
            watermarks::advance(txn, Stream::Comments, &widgets(), start())
        });
        assert_eq!(shelf.store.check().unwrap(), [], "before {break_it}");
        shelf.write(|txn| Ok(txn.execute_batch(break_it)?));
        let found = shelf.store.check().unwrap();
        let (what, place) = (what.to_owned(), place.to_owned());
        assert!(
            found.contains(&Problem { what, place }),
            "{break_it}: {found:?}"
        );
    }
}
