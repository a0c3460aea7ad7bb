//! Identifiers as types, so that a pull request number can never be passed as a user id.
//!
//! Every type is checked when it is made from text or from a payload; after that it is valid.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is not a valid identifier. The message names the text's kind, never its secret value:
/// none of these identifiers is secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct IdError {
    text: String,
    expected: &'static str,
}

impl IdError {
    fn new(text: &str, expected: &'static str) -> Self {
        let text = text.chars().take(80).collect();
        Self { text, expected }
    }
}

/// A repository as GitHub names it: `owner/name`.
///
/// GitHub compares names without regard to case, so equality and hashing do too; the spelling that
/// was given is kept for display and for keys.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RepoName {
    full: String,
    slash: usize,
}

impl RepoName {
    /// The account or organisation.
    pub fn owner(&self) -> &str {
        &self.full[..self.slash]
    }

    /// The repository's name without its owner.
    pub fn name(&self) -> &str {
        &self.full[self.slash + 1..]
    }

    /// `owner/name`.
    pub fn as_str(&self) -> &str {
        &self.full
    }
}

impl PartialEq for RepoName {
    fn eq(&self, other: &Self) -> bool {
        self.full.eq_ignore_ascii_case(&other.full)
    }
}

impl Eq for RepoName {}

impl std::hash::Hash for RepoName {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.full.to_ascii_lowercase().hash(state);
    }
}

impl FromStr for RepoName {
    type Err = IdError;

    /// Owners are letters, digits, hyphens and (for managed users) underscores; names also take dots.
    fn from_str(text: &str) -> Result<Self, IdError> {
        let error = || IdError::new(text, "a repository name of the form owner/name");
        let slash = text.find('/').ok_or_else(error)?;
        let (owner, name) = (&text[..slash], &text[slash + 1..]);
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let owner_ok = !owner.is_empty()
            && owner.len() <= 39 + 20
            && owner.chars().all(plain)
            && !owner.starts_with('-');
        let name_ok = !name.is_empty()
            && name.len() <= 100
            && name.chars().all(|c| plain(c) || c == '.')
            && name != "."
            && name != "..";
        if owner_ok && name_ok {
            Ok(Self {
                full: text.to_owned(),
                slash,
            })
        } else {
            Err(error())
        }
    }
}

impl fmt::Display for RepoName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full)
    }
}

impl TryFrom<String> for RepoName {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<RepoName> for String {
    fn from(repo: RepoName) -> Self {
        repo.full
    }
}

/// The full object name of a commit: 40 (SHA-1) or 64 (SHA-256) lower-case hexadecimal digits.
/// Abbreviated names are refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitSha(String);

impl CommitSha {
    /// All digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        &self.0[..10]
    }
}

impl FromStr for CommitSha {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let full = matches!(text.len(), 40 | 64);
        if full
            && text
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        {
            Ok(Self(text.to_owned()))
        } else {
            Err(IdError::new(
                text,
                "a full commit id (40 or 64 hexadecimal digits)",
            ))
        }
    }
}

impl fmt::Display for CommitSha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for CommitSha {
    type Error = IdError;

    fn try_from(text: String) -> Result<Self, IdError> {
        text.parse()
    }
}

impl From<CommitSha> for String {
    fn from(sha: CommitSha) -> Self {
        sha.0
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $expected:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "i64", into = "i64")]
        pub struct $name(i64);

        impl $name {
            /// The number as GitHub and the store write it; positive.
            pub fn get(self) -> i64 {
                self.0
            }
        }

        impl TryFrom<i64> for $name {
            type Error = IdError;

            fn try_from(number: i64) -> Result<Self, IdError> {
                if number > 0 {
                    Ok(Self(number))
                } else {
                    Err(IdError::new(&number.to_string(), $expected))
                }
            }
        }

        impl From<$name> for i64 {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
                let number = if digits { text.parse::<i64>().ok() } else { None };
                number
                    .and_then(|n| Self::try_from(n).ok())
                    .ok_or_else(|| IdError::new(text, $expected))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// The number of a pull request within its repository.
    PrNumber,
    "a pull request number"
);
number!(
    /// The numeric id of an account, which unlike a login can't be taken over by renaming.
    UserId,
    "a numeric user id"
);
number!(
    /// The id of an issue comment or of a review comment; the two are separate sequences.
    CommentId,
    "a comment id"
);
number!(
    /// The numeric id of a repository, which survives renames and transfers.
    RepoId,
    "a numeric repository id"
);

/// The name of a trigger: equal keys are the same work, done at most once.
///
/// Formats: `pr_opened:{repo}:{n}:{sha}`, `mention:{repo}:{n}:{comment}`,
/// `mention:{repo}:{n}:review-{comment}`, `publish:{key of the run}`, `render:{repo}:{n}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DedupeKey(String);

impl DedupeKey {
    /// The key of an automatic review of one head, whatever caused it.
    pub fn automatic(repo: &RepoName, pr: PrNumber, head: &CommitSha) -> Self {
        Self(format!("pr_opened:{repo}:{pr}:{head}"))
    }

    /// The key of a mention in a comment.
    pub fn mention(repo: &RepoName, pr: PrNumber, comment: CommentRef) -> Self {
        match comment.source {
            CommentSource::Issue => Self(format!("mention:{repo}:{pr}:{}", comment.id)),
            CommentSource::Review => Self(format!("mention:{repo}:{pr}:review-{}", comment.id)),
        }
    }

    /// The key of the work that makes a recorded run visible.
    pub fn publish(run: &DedupeKey) -> Self {
        Self(format!("publish:{run}"))
    }

    /// The key of the work that shows a pull request's stored review otherwise.
    pub fn render(repo: &RepoName, pr: PrNumber) -> Self {
        Self(format!("render:{repo}:{pr}"))
    }

    /// For a [`DedupeKey::publish`] key, the key of its run.
    pub fn published_run(&self) -> Option<DedupeKey> {
        self.0
            .strip_prefix("publish:")
            .map(|run| Self(run.to_owned()))
    }

    /// A key as the store holds it.
    pub fn from_stored(text: String) -> Self {
        Self(text)
    }

    /// The key as the store holds it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DedupeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which of GitHub's two comment sequences an id belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommentSource {
    /// A comment in the conversation (`/issues/comments`).
    Issue,
    /// A comment on a line of the diff (`/pulls/comments`).
    Review,
}

impl CommentSource {
    /// The word that the store's `comment_source` columns hold.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Issue => "issue",
            Self::Review => "review",
        }
    }
}

/// A comment's id together with the sequence it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommentRef {
    /// The sequence.
    pub source: CommentSource,
    /// The id within it.
    pub id: CommentId,
}

/// An amount of model tokens; input, output and cache tokens count alike.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// No tokens.
    pub const ZERO: Self = Self(0);

    /// The largest limit or usage: thousands of them add up within 64 bits.
    pub const MOST: Self = Self(1_000_000_000_000_000);

    /// The sum, held at the largest value instead of wrapping.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left after taking `other` away, at least zero.
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `percent` of this amount, rounded down.
    pub fn percent(self, percent: u32) -> Self {
        Self((u128::from(self.0) * u128::from(percent) / 100).min(u128::from(u64::MAX)) as u64)
    }
}

impl fmt::Display for Tokens {
    /// Digits in groups of three: `1,500,000`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        let mut text = String::with_capacity(digits.len() + digits.len() / 3);
        for (i, digit) in digits.chars().enumerate() {
            if i > 0 && (digits.len() - i).is_multiple_of(3) {
                text.push(',');
            }
            text.push(digit);
        }
        f.pad(&text)
    }
}

/// An amount of money in millionths of a US dollar.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

impl MicroUsd {
    /// No money.
    pub const ZERO: Self = Self(0);

    /// The largest limit or cost, a billion dollars.
    pub const MOST: Self = Self(1_000_000_000_000_000);

    /// Micro-dollars in a dollar.
    pub const DOLLAR: u64 = 1_000_000;
}

impl fmt::Display for MicroUsd {
    /// Dollars with two to six digits after the point: `$12.50`, `$0.000001`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fraction = format!("{:06}", self.0 % Self::DOLLAR);
        let (cents, rest) = fraction.split_at(2);
        let rest = rest.trim_end_matches('0');
        f.pad(&format!("${}.{cents}{rest}", self.0 / Self::DOLLAR))
    }
}

/// Who holds a lease: unique per process start and worker, for example `host/4711/9f2c/w1`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OwnerName(pub String);

impl fmt::Display for OwnerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// 128 random bits as 32 hexadecimal digits, from the operating system.
///
/// # Errors
/// When the system has no source of randomness.
pub fn nonce() -> std::io::Result<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_names_are_checked_and_compared_without_case() {
        for good in ["acme/widgets", "a/b.c", "Acme-1/w_x", "o/.github"] {
            assert_eq!(good.parse::<RepoName>().unwrap().as_str(), good);
        }
        for bad in [
            "", "acme", "/x", "a/", "a/b/c", "a/..", "-a/b", "a b/c", "a/b\n", "é/x",
        ] {
            assert!(bad.parse::<RepoName>().is_err(), "{bad:?}");
        }
        let (a, b): (RepoName, RepoName) = ("Acme/W".parse().unwrap(), "acme/w".parse().unwrap());
        assert_eq!(a, b);
    }

    #[test]
    fn only_full_commit_ids_are_accepted() {
        let full = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(full.parse::<CommitSha>().unwrap().short(), "0123456789");
        for bad in [
            "",
            "0123456",
            &full[1..],
            &full.to_uppercase(),
            &format!("{full}0"),
        ] {
            assert!(bad.parse::<CommitSha>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn numbers_are_positive_decimal_digits() {
        assert_eq!("42".parse::<UserId>().unwrap().get(), 42);
        for bad in [
            "",
            "0",
            "-1",
            "+1",
            "octocat",
            "1e3",
            "99999999999999999999",
        ] {
            assert!(bad.parse::<UserId>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn tokens_are_grouped_and_never_wrap() {
        assert_eq!(Tokens(1_500_000).to_string(), "1,500,000");
        assert_eq!(Tokens(999).to_string(), "999");
        assert_eq!(Tokens(u64::MAX).plus(Tokens(1)), Tokens(u64::MAX));
        assert_eq!(Tokens(1).minus(Tokens(2)), Tokens::ZERO);
        assert_eq!(Tokens(u64::MAX).percent(100), Tokens(u64::MAX));
    }

    #[test]
    fn money_is_shown_in_dollars_to_the_last_digit_that_counts() {
        for (amount, shown) in [
            (0, "$0.00"),
            (1, "$0.000001"),
            (500_000, "$0.50"),
            (12_345_000, "$12.345"),
        ] {
            assert_eq!(MicroUsd(amount).to_string(), shown);
        }
    }

    #[test]
    fn publish_keys_name_their_run() {
        let run = DedupeKey::from_stored("mention:o/r:1:2".into());
        let publish = DedupeKey::publish(&run);
        assert_eq!(publish.as_str(), "publish:mention:o/r:1:2");
        assert_eq!(publish.published_run(), Some(run.clone()));
        assert_eq!(run.published_run(), None);
    }
}
