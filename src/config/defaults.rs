//! The values of keys that nobody set. A test holds them against the table in [`super::keys`].

use std::path::PathBuf;
use std::time::Duration;

use log::LevelFilter;

use super::types::*;

impl Default for RepoRules {
    fn default() -> Self {
        Self {
            triggers: TriggerConfig {
                allowlist: Default::default(),
                handle: Handle::default(),
                on_push: false,
                on_ready: true,
                on_edit: false,
                ignore: IgnoreRules::default(),
                never: Vec::new(),
            },
            engine: EngineConfig {
                kind: EngineKind::Builtin,
                binary: None,
                command: Vec::new(),
                args: Vec::new(),
                model: None,
                expected_version: None,
                timeout: Duration::from_secs(900),
                env: Vec::new(),
                standards_paths: vec!["AGENTS.md".to_owned(), ".github/REVIEW.md".to_owned()],
            },
            review: ReviewConfig::default(),
            caps: SizeCaps {
                max_changed_files: 100,
                max_changed_lines: 5_000,
                default_exclusions: true,
                excluded_paths: Vec::new(),
            },
            publish: PublishConfig {
                mode: PublishMode::Sticky,
                dry_run: false,
                post_superseded: true,
                max_publish_attempts: 10,
            },
        }
    }
}

impl Default for PollConfig {
    fn default() -> Self {
        Self {
            floor: Duration::from_secs(10),
            ceiling: Duration::from_secs(600),
            overlap: Duration::from_secs(300),
            max_requests_per_hour: 4_000,
        }
    }
}

impl Default for Pacing {
    fn default() -> Self {
        Self {
            review_interval: Duration::from_secs(900),
            mention_interval: Duration::from_secs(300),
            max_reviews: None,
        }
    }
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            count: 2,
            lease: Duration::from_secs(1_800),
            max_attempts: 3,
            shutdown_grace: Duration::ZERO,
        }
    }
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            level: LevelFilter::Info,
            format: LogFormat::Auto,
        }
    }
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            max_age: Duration::from_secs(90 * 24 * 3600),
        }
    }
}

/// `budget.reviewer_share_pct`.
pub(super) const REVIEWER_SHARE_PCT: u32 = 40;

/// `workspace.min_free_mb`.
pub(super) const MIN_FREE_MB: u64 = 512;

/// `github.api_url`.
pub(super) const API_URL: &str = "https://api.github.com";

/// `github.token_env`.
pub(super) const TOKEN_ENV: &str = "GITHUB_TOKEN";

/// `store.path`.
pub(super) fn store_path() -> PathBuf {
    PathBuf::from("./prwarden.db")
}
