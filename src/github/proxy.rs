//! The proxy between prwarden and GitHub, as the environment names it. Pure.
//!
//! The API is one host, so this is decided once: `HTTPS_PROXY`, else `ALL_PROXY`, unless `NO_PROXY`
//! lists the host. Each may be written in lower case too. An API without TLS is a double on the
//! loopback interface or a test server, and is never reached through a proxy.

use ureq::{Proxy, ProxyProtocol};
use url::Url;

/// Variables that name a proxy, the first set one counts.
const PROXIES: [&str; 4] = ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"];

/// Variables that list hosts which are reached without one.
const EXCEPTIONS: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The proxy for `api`.
///
/// # Errors
/// When a variable names something that is no usable proxy: going around a proxy in silence could be
/// what the operator wants to prevent. The address is not shown, it may hold a password.
pub(super) fn choose(
    api: &Url,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Proxy>, String> {
    let set = |name: &&str| env(name).filter(|value| !value.trim().is_empty());
    if api.scheme() != "https" {
        return Ok(None);
    }
    let exceptions = EXCEPTIONS.iter().find_map(set).unwrap_or_default();
    if is_listed(&exceptions, api) {
        return Ok(None);
    }
    for name in PROXIES {
        let Some(address) = set(&name) else { continue };
        let proxy = Proxy::new(address.trim()).ok();
        let proxy = proxy.filter(|proxy| !proxy.host().is_empty()).ok_or_else(|| {
            format!("the variable {name} holds no address of a proxy such as http://proxy.example:3128")
        })?;
        return match proxy.protocol() {
            ProxyProtocol::Http | ProxyProtocol::Https => Ok(Some(proxy)),
            other => Err(format!(
                "the variable {name} names a proxy that speaks {other}; prwarden knows HTTP proxies only"
            )),
        };
    }
    Ok(None)
}

/// Whether a `NO_PROXY` list has the host of `api`: names separated by commas or spaces, each for
/// itself and everything below it, with or without a leading dot or `*.`, optionally with a port; `*`
/// is every host.
fn is_listed(list: &str, api: &Url) -> bool {
    let host = api.host_str().unwrap_or_default();
    list.split([',', ' ', '\t'])
        .map(str::to_ascii_lowercase)
        .any(|entry| {
            let (name, port) = match entry.rsplit_once(':') {
                Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
                _ => (entry.as_str(), None),
            };
            let same_port = port.is_none_or(|port| {
                api.port_or_known_default()
                    .is_some_and(|ours| port == ours.to_string())
            });
            let name = name.trim_start_matches('*').trim_start_matches('.');
            let below = host
                .strip_suffix(name)
                .is_some_and(|above| above.is_empty() || above.ends_with('.'));
            entry == "*" || (!name.is_empty() && same_port && below)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(api: &str, variables: &[(&str, &str)]) -> Result<Option<String>, String> {
        let env = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let proxy = choose(&api.parse().unwrap(), &env)?;
        Ok(proxy.map(|proxy| format!("{}:{}", proxy.host(), proxy.port())))
    }

    const API: &str = "https://api.github.com";
    const PROXY: (&str, &str) = ("HTTPS_PROXY", "http://proxy.example:3128");

    #[test]
    fn a_proxy_is_used_for_the_api_but_not_without_tls() {
        let proxy = Ok(Some("proxy.example:3128".to_owned()));
        assert_eq!(chosen(API, &[PROXY]), proxy);
        for name in ["https_proxy", "ALL_PROXY", "all_proxy"] {
            assert_eq!(chosen(API, &[(name, PROXY.1)]), proxy, "{name}");
        }
        assert_eq!(chosen(API, &[("HTTP_PROXY", PROXY.1)]), Ok(None));
        assert_eq!(chosen("http://127.0.0.1:8080", &[PROXY]), Ok(None));
        assert_eq!(chosen(API, &[]), Ok(None));
        assert_eq!(chosen(API, &[("HTTPS_PROXY", " ")]), Ok(None));
    }

    #[test]
    fn a_broken_proxy_is_not_gone_around_and_its_password_is_not_shown() {
        for address in [
            "http://:secret",
            "socks5://u:secret@proxy.example",
            "::secret::",
        ] {
            let error = chosen(API, &[("HTTPS_PROXY", address)]).unwrap_err();
            assert!(
                error.contains("HTTPS_PROXY") && !error.contains("secret"),
                "{error}"
            );
        }
    }

    #[test]
    fn hosts_on_the_list_are_reached_directly() {
        let listed = |list: &str| chosen(API, &[PROXY, ("no_proxy", list)]) == Ok(None);
        for list in [
            "*",
            "api.github.com",
            "localhost, API.GitHub.com",
            "localhost github.com",
            ".github.com",
            "*.github.com",
            "api.github.com:443",
        ] {
            assert!(listed(list), "{list}");
        }
        for list in [
            "",
            ",",
            ".",
            "hub.com",
            "api.github.com.example",
            "example.api.github.com",
            "api.github.com:8443",
            "api",
        ] {
            assert!(!listed(list), "{list}");
        }
        let six =
            |list| chosen("https://[::1]:8443/api/v3", &[PROXY, ("NO_PROXY", list)]) == Ok(None);
        assert!(six("[::1]") && six("[::1]:8443") && !six("[::1]:443"));
    }
}
