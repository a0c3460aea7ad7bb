//! A text that must never be shown.

pub mod leak;

use std::fmt;

/// A credential. Its `Debug` form hides it; there is no `Display`, so that it can't slip into a
/// message. The only way to the text is [`Secret::expose`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes the text without the white space that files and shells leave around it.
    pub fn new(text: &str) -> Self {
        Self(text.trim().to_owned())
    }

    /// The text, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let secret = Secret::new(" ghp_abc\n");
        assert_eq!(secret.expose(), "ghp_abc");
        assert!(!format!("{secret:?}").contains("abc"));
    }
}
