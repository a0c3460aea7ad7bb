//! Money, pools and shares of `[budget]` and `[roles]`.

use super::super::values::parse_dollars;
use super::*;
use crate::ids::MicroUsd;

/// What the file says of `budget.max_run_usd`.
fn run(value: &str) -> MicroUsd {
    let text = format!("{PLAN}daily_usd = 900000000\nmax_run_usd = {value}\n");
    let plan = good(&text).0.budget.plan.unwrap();
    plan.money.unwrap().max_run_microusd
}

#[test]
fn dollars_are_exact_to_the_millionth() {
    for (value, amount) in [
        ("5", 5_000_000),
        ("2.5", 2_500_000),
        ("0.1", 100_000),
        ("'0.000001'", 1),
        ("1_000.250", 1_000_250_000),
        ("0.30", 300_000),
    ] {
        assert_eq!(run(value), MicroUsd(amount), "{value}");
    }
    for value in [
        "0",
        "0.0",
        "-1",
        "1e3",
        "inf",
        "nan",
        "true",
        "'$5'",
        "'5 USD'",
        "''",
        "'.5'",
        "'5.'",
        "0.0000001",
        "'1,5'",
        "0x10",
        "1000000001",
        "99999999999999999999",
    ] {
        let text = format!("{PLAN}daily_usd = 900000000\nmax_run_usd = {value}\n");
        let messages = bad(&text);
        assert!(
            messages
                .iter()
                .any(|message| message.contains("budget.max_run_usd")),
            "{value}: {messages:?}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_shown_of_money_reads_as_the_same_amount(amount in 0..=i64::MAX as u64) {
        let shown = MicroUsd(amount).to_string();
        prop_assert_eq!(parse_dollars(shown.trim_start_matches('$')), Some(amount));
    }

    #[test]
    fn no_text_makes_the_reader_of_dollars_panic(text in "\\PC{0,24}|[0-9_.]{0,24}") {
        let read = parse_dollars(&text);
        prop_assert!(read.is_none_or(|amount| amount <= i64::MAX as u64));
    }
}

#[test]
fn limits_in_money_belong_together() {
    refused(
        &format!("{PLAN}daily_usd = 5\n"),
        &["budget.max_run_usd", "missing"],
    );
    refused(
        &format!("{PLAN}max_run_usd = 5\n"),
        &["budget.max_run_usd", "daily_usd"],
    );
    refused(
        &format!("{PLAN}daily_usd = 5\nweekly_usd = 1\nmax_run_usd = 2\n"),
        &["budget.weekly_usd", "$2.00", "no run could ever start"],
    );
}

fn pool(keys: &str) -> Pool {
    good(&format!("{PLAN}{keys}")).0.budget.pool
}

#[test]
fn the_place_in_a_pool_is_what_two_keys_say() {
    assert_eq!(pool(""), Pool::Alone);
    assert_eq!(pool("comply = true\n"), Pool::Alone);
    assert_eq!(pool("authority = true\n"), Pool::Authority);
    assert_eq!(pool("authority = false\n"), Pool::Member);
    assert_eq!(pool("authority = false\ncomply = false\n"), Pool::Apart);
    for keys in ["comply = false\n", "authority = true\ncomply = false\n"] {
        refused(
            &format!("{PLAN}{keys}"),
            &["budget.comply", "authority = false"],
        );
    }
}

#[test]
fn who_complies_needs_no_limits_and_is_told_that_they_have_no_effect() {
    let engine = "[engine]\nkind = 'claude'\n";
    let (config, warnings) = good(&format!("{engine}[budget]\nauthority = false\n"));
    assert_eq!(config.budget.plan, None);
    assert!(
        warnings
            .iter()
            .all(|warning| !warning.to_string().contains("budget."))
    );
    let (config, warnings) = good(&format!("{engine}{PLAN}authority = false\n"));
    assert_eq!(config.budget.plan, None);
    let about = |key: &str| {
        let key = format!("budget.{key}");
        warnings
            .iter()
            .any(|warning| warning.to_string().contains(&key))
    };
    assert!(about("session_tokens") && about("weekly_tokens") && about("max_run_tokens"));
    let (_, warnings) = good(&format!("{PLAN}authority = false\ncomply = false\n"));
    assert!(
        warnings
            .iter()
            .any(|warning| warning.to_string().contains("budget.comply"))
    );
}

#[test]
fn an_authority_has_limits_to_publish() {
    let messages = bad("[budget]\nauthority = true\n");
    assert_eq!(messages.len(), 3, "{messages:?}");
}

#[test]
fn a_role_has_room_for_a_run() {
    let share = |percent: u32| format!("{PLAN}[roles.review]\nshare_pct = {percent}\n");
    assert_eq!(good(&share(50)).0.budget.shares.review, Some(50));
    refused(&share(1), &["roles.review.share_pct", "80,000 tokens"]);
    refused(
        "[roles.reviews]\nshare_pct = 1\n",
        &["roles.reviews", "review"],
    );
    refused(
        "[roles]\nshare_pct = 1\n",
        &["roles.share_pct", "[roles.review]"],
    );
}
