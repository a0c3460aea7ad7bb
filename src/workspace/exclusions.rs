//! Which files are withheld from a review: git pathspecs, so that the size gate, the diff and the
//! record of what was left out all ask the same matcher.

use crate::config::SizeCaps;

/// Files that tools write and nobody reviews line by line. `**/` also matches the top directory;
/// `/**` matches what lies below, so that a symlink or submodule of that name is still reviewed.
const DEFAULTS: &[&str] = &[
    // Lock files.
    "**/Cargo.lock",
    "**/package-lock.json",
    "**/npm-shrinkwrap.json",
    "**/yarn.lock",
    "**/pnpm-lock.yaml",
    "**/bun.lock",
    "**/bun.lockb",
    "**/deno.lock",
    "**/composer.lock",
    "**/Gemfile.lock",
    "**/gems.locked",
    "**/poetry.lock",
    "**/Pipfile.lock",
    "**/pdm.lock",
    "**/pixi.lock",
    "**/uv.lock",
    "**/go.sum",
    "**/go.work.sum",
    "**/flake.lock",
    "**/mix.lock",
    "**/rebar.lock",
    "**/pubspec.lock",
    "**/Podfile.lock",
    "**/Package.resolved",
    "**/Cartfile.resolved",
    "**/packages.lock.json",
    "**/gradle.lockfile",
    "**/stack.yaml.lock",
    "**/cabal.project.freeze",
    "**/Chart.lock",
    "**/.terraform.lock.hcl",
    // Vendored trees.
    "**/vendor/**",
    "**/third_party/**",
    "**/node_modules/**",
    "**/bower_components/**",
    "**/Pods/**",
    "**/.yarn/cache/**",
    "**/.yarn/releases/**",
    // Generated code.
    "**/__generated__/**",
    "**/*.generated.*",
    "**/*.pb.go",
    "**/*.pb.cc",
    "**/*.pb.h",
    "**/*_pb2.py",
    "**/*_pb2.pyi",
    "**/*_pb2_grpc.py",
    "**/*.g.dart",
    "**/*.freezed.dart",
    "**/*.Designer.cs",
    // Minified bundles and their maps.
    "**/*.min.js",
    "**/*.min.mjs",
    "**/*.min.css",
    "**/*.bundle.js",
    "**/*.js.map",
    "**/*.css.map",
];

/// The pathspecs of one repository's rules.
#[derive(Debug)]
pub(super) struct Exclusions {
    defaults: &'static [&'static str],
    operator: Vec<String>,
}

impl Exclusions {
    /// What `caps` asks for. A blank pattern would withhold everything; it is passed over.
    pub(super) fn new(caps: &SizeCaps) -> Self {
        let operator = caps.excluded_paths.iter();
        Self {
            defaults: if caps.default_exclusions {
                DEFAULTS
            } else {
                &[]
            },
            operator: operator.filter(|p| !p.trim().is_empty()).cloned().collect(),
        }
    }

    /// Whether nothing is withheld.
    pub(super) fn is_empty(&self) -> bool {
        self.defaults.is_empty() && self.operator.is_empty()
    }

    /// Matches what is reviewed.
    pub(super) fn reviewed(&self) -> Vec<String> {
        let patterns = self.defaults.iter().copied();
        let patterns = patterns.chain(self.operator.iter().map(String::as_str));
        patterns
            .map(|pattern| format!(":(top,exclude,glob){pattern}"))
            .collect()
    }

    /// Matches what the operator's own patterns withhold; empty when there are none.
    pub(super) fn by_operator(&self) -> Vec<String> {
        let patterns = self.operator.iter();
        patterns
            .map(|pattern| format!(":(top,glob){pattern}"))
            .collect()
    }
}
