//! Where a provider's pages may lead: to the hosts that its manifest names, and nowhere else.
//!
//! A page is somebody else's text. Whatever it says follows, this program asks only hosts that a person has written down,
//! so a page can send it neither to a stranger nor into the network it runs in. Manifests name https addresses; a name that
//! is made to lead into a private network gets no further than the certificate.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use gpuledger_scrapers::contract::Scraper;
use url::{Host, Url};

use super::error::FetchError;

/// The hosts a provider may be asked at: scheme, host and port.
#[derive(Debug, Clone)]
pub struct Hosts(BTreeSet<(String, String, u16)>);

impl Hosts {
    /// The hosts of a provider's start pages and history, and those that its manifest lists beside.
    #[must_use]
    pub fn of(scraper: &dyn Scraper) -> Self {
        let manifest = scraper.manifest();
        let listed = manifest.fetch.hosts.iter().map(|host| format!("https://{host}/"));
        let start = [true, false].into_iter().flat_map(|has_key| manifest.start(has_key)).chain(scraper.history_index());
        let urls = start.map(|request| request.url).chain(listed);
        Self(urls.filter_map(|url| place(&Url::parse(&url).ok()?)).collect())
    }

    /// The address, if it is one that may be asked.
    ///
    /// # Errors
    /// When it is none, or leads elsewhere.
    pub fn address(&self, text: &str) -> Result<Url, FetchError> {
        let url = Url::parse(text).map_err(|error| FetchError::BadAddress { reason: error.to_string() })?;
        let astray = |reason: String| Err(FetchError::LedAstray { reason });
        let Some(place) = place(&url) else {
            return astray(format!("its address is one of `{}`, not of the web", url.scheme()));
        };
        if !url.username().is_empty() || url.password().is_some() {
            return astray("its address has a user name or a password in it".to_owned());
        }
        let (scheme, host, port) = &place;
        // A link may turn to https where the manifest has http, never the other way.
        let is_upgrade = scheme == "https" && *port == 443 && self.0.contains(&("http".to_owned(), host.clone(), 80));
        if self.0.contains(&place) || is_upgrade {
            return Ok(url);
        }
        let origin = url.origin().ascii_serialization();
        astray(if is_private(&url) {
            format!("it is on {origin}, which is a private address")
        } else {
            format!("it is on {origin}, which the manifest does not name")
        })
    }
}

fn place(url: &Url) -> Option<(String, String, u16)> {
    let is_web = ["http", "https"].contains(&url.scheme());
    Some((url.scheme().to_owned(), url.host_str().filter(|_| is_web)?.to_owned(), url.port_or_known_default()?))
}

/// Whether a redirect stays where it was asked: the same host and port, or https in the place of http.
pub(super) fn is_at_home(from: &Url, to: &Url) -> bool {
    let is_upgrade = from.scheme() == "http" && to.scheme() == "https" && from.port().is_none() && to.port().is_none();
    from.host_str() == to.host_str() && (from.origin() == to.origin() || is_upgrade)
}

/// Whether an address is of this machine, a private network or a cloud's inside, by its number or by its name.
pub(crate) fn is_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => is_private_v4(ip),
        Some(Host::Ipv6(ip)) => is_private_v6(ip),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost"
                || [".localhost", ".local", ".internal", ".localdomain", ".home.arpa"].iter().any(|end| name.ends_with(end))
                || name.parse::<IpAddr>().is_ok()
                || !name.contains('.')
        }
        None => false,
    }
}

const fn is_private_v4(ip: Ipv4Addr) -> bool {
    let [a, b, ..] = ip.octets();
    ip.is_private()
        || ip.is_loopback()
        || ip.is_link_local()
        || ip.is_multicast()
        || a == 0
        || a >= 240
        // Shared between a carrier and its customers; one cloud's metadata service is there.
        || (a == 100 && b >= 64 && b < 128)
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    let first = ip.segments()[0];
    ip.is_loopback()
        || ip.is_unspecified()
        || ip.is_multicast()
        || first & 0xfe00 == 0xfc00
        || first & 0xffc0 == 0xfe80
        // An IPv4 address in the form of an IPv6 one, also behind a translator.
        || ip.to_ipv4().is_some_and(is_private_v4)
        || (first == 0x64 && ip.segments()[1] == 0xff9b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known_in_every_way_of_writing_them() {
        let private = [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "255.255.255.255",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:a00:1]",
            "[64:ff9b::7f00:1]",
            "[fd00::1]",
            "[fe80::1]",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "a.localhost",
            "metadata.google.internal",
            "printer.local",
            "intranet",
        ];
        for host in private {
            let url = Url::parse(&format!("http://{host}/prices")).expect("it is an address");
            assert!(is_private(&url), "{host} counts as public");
        }
        for host in ["prices.azure.com", "8.8.8.8", "172.32.0.1", "100.128.0.1", "[2606:4700::1111]", "localhost.example.com"] {
            let url = Url::parse(&format!("https://{host}/prices")).expect("it is an address");
            assert!(!is_private(&url), "{host} counts as private");
        }
    }

    #[test]
    fn a_redirect_stays_at_home_only_on_the_same_host_and_port() {
        let at_home = |from: &str, to: &str| is_at_home(&Url::parse(from).expect("a"), &Url::parse(to).expect("b"));
        assert!(at_home("https://a.com/1", "https://a.com:443/2"));
        assert!(at_home("http://a.com/1", "https://a.com/2"));
        for to in ["http://a.com/2", "https://a.com:8443/2", "https://b.com/2", "https://a.com.evil.net/2", "https://127.0.0.1/2"]
        {
            assert!(!at_home("https://a.com/1", to), "{to}");
        }
        assert!(!at_home("http://127.0.0.1:80/", "http://127.0.0.1:6379/"));
    }
}
