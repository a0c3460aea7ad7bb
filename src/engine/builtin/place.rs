//! What a path says about the text in the file: prose, an example, a configuration.

/// What may be concluded from a file's path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Tests, fixtures, documentation and templates: what stands there is usually made up.
    pub example: bool,
    /// Values are written without quotation marks: environment, properties, YAML.
    pub unquoted: bool,
    /// Text for people, in which any script and quoted markup are at home.
    pub prose: bool,
}

impl Place {
    /// Reads `path`, whose parts are separated by `/`.
    pub fn of(path: &str) -> Self {
        const FOLDERS: [&str; 20] = [
            "test",
            "tests",
            "testing",
            "testdata",
            "test-data",
            "test_data",
            "__tests__",
            "spec",
            "specs",
            "e2e",
            "fixture",
            "fixtures",
            "mock",
            "mocks",
            "example",
            "examples",
            "sample",
            "samples",
            "doc",
            "docs",
        ];
        let path = path.to_ascii_lowercase();
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", &path));
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        let prose = matches!(
            ending,
            "md" | "markdown"
                | "mdx"
                | "rst"
                | "adoc"
                | "txt"
                | "tex"
                | "po"
                | "pot"
                | "arb"
                | "strings"
                | "xliff"
                | "xlf"
                | "srt"
                | "vtt"
                | "html"
                | "htm"
        );
        let template = matches!(
            ending,
            "example" | "sample" | "template" | "tmpl" | "dist" | "tpl" | "snap"
        );
        let test_name = name.starts_with("test_")
            || name.starts_with("conftest.")
            || [
                "_test.",
                ".test.",
                ".spec.",
                "_spec.",
                ".example.",
                ".sample.",
                "-example.",
            ]
            .iter()
            .any(|part| name.contains(part));
        let dotenv = name.starts_with(".env") || ending == "env";
        Self {
            example: prose
                || template
                || test_name
                || folders.split('/').any(|folder| FOLDERS.contains(&folder)),
            unquoted: dotenv
                || matches!(
                    ending,
                    "ini" | "properties" | "cfg" | "conf" | "yml" | "yaml" | "netrc"
                ),
            prose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_where_made_up_values_are_usual() {
        for example in [
            "README.md",
            "tests/a.rs",
            "src/login.test.ts",
            "pkg/a_test.go",
            "deploy/.env.example",
            "docs/setup.yml",
            "Examples/a.py",
        ] {
            assert!(Place::of(example).example, "{example}");
        }
        for real in [
            "src/a.py",
            ".env",
            "deploy/prod.yml",
            "latest/contest.py",
            "",
        ] {
            assert!(!Place::of(real).example, "{real}");
        }
        assert!(Place::of("deploy/.env.production").unquoted);
        assert!(!Place::of("src/main.rs").unquoted);
    }
}
