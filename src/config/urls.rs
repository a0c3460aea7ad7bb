//! The two roots of a GitHub: its API and its web pages.

use toml::de::DeValue;
use url::{Host, Url};

use super::error::{Parsed, Wrong, quoted};
use super::values::line;

/// A root that a token may be sent to: https, or http on the loopback interface; no user, query or
/// fragment, no slash at the end of its path.
pub(super) fn root(value: &DeValue<'_>) -> Parsed<Url> {
    parse_root(&line(value)?)
}

pub(super) fn parse_root(text: &str) -> Parsed<Url> {
    let remedy = "write it like https://api.github.com or https://HOST/api/v3";
    let mut url = Url::parse(text).map_err(|error| {
        // The text isn't shown: a password may stand in it.
        Wrong::new(format!("it is not a URL ({error})"), remedy)
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Wrong::new(
            "it contains a user name or a password",
            "write it without, and name the token by token_env or token_file",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Wrong::new("it has a query or a fragment", remedy));
    }
    match url.scheme() {
        "https" if url.host().is_some() => {}
        "http" if is_loopback(&url) => {}
        "http" => {
            return Err(Wrong::new(
                format!("{} would send the token in the clear", quoted(text)),
                "write https://; http is for loopback hosts only",
            ));
        }
        _ => {
            return Err(Wrong::new(
                format!("{} is not an https URL", quoted(text)),
                remedy,
            ));
        }
    }
    let path = url.path().trim_end_matches('/').to_owned();
    url.set_path(&path);
    Ok(url)
}

/// Whether the URL's host is this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// The web root that belongs to an API root: `https://github.com` for its API, the host of
/// `https://HOST/api/v3`, `https://NAME.ghe.com` for `https://api.NAME.ghe.com`, and a loopback root
/// itself.
pub(super) fn web_of(api: &Url) -> Parsed<Url> {
    let unknown = || {
        Wrong::new(
            format!("the web host of {} is not known", quoted(api.as_str())),
            "set github.web_url, or write api_url as https://HOST/api/v3",
        )
    };
    let mut web = api.clone();
    web.set_path("");
    let host = api.host_str().ok_or_else(unknown)?;
    let of_api = host.strip_prefix("api.");
    let known = of_api.filter(|rest| *rest == "github.com" || rest.ends_with(".ghe.com"));
    if let (Some(rest), "/") = (known, api.path()) {
        web.set_host(Some(rest)).map_err(|_| unknown())?;
        return Ok(web);
    }
    if api.path() == "/api/v3" || is_loopback(api) {
        return Ok(web);
    }
    Err(unknown())
}
