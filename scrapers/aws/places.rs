//! Regions: what they are called where the source gives no code, and which price list they belong to.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::contract::Site;

/// Flag of an offer in a local or Wavelength zone, which is smaller and dearer than the region it belongs to.
pub(super) const LOCAL_ZONE: &str = "local_zone";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Places {
    spot: BTreeMap<String, String>,
    page: BTreeMap<String, String>,
}

static PLACES: LazyLock<Places> =
    LazyLock::new(|| toml::from_str(include_str!("places.toml")).expect("the places beside this file read"));

/// The code of a region of the spot feed.
pub(super) fn of_spot(name: &str) -> &str {
    PLACES.spot.get(name).map_or(name, String::as_str)
}

/// The code of a region as pages for people name it.
pub(super) fn of_page(name: &str) -> Option<&'static str> {
    PLACES.page.get(name).map(String::as_str)
}

/// The price list that a region belongs to, where it is not the one that all share.
pub(super) fn site(region: &str) -> Option<Site> {
    match region {
        _ if region.starts_with("cn-") => Some(Site::Cn),
        _ if region.starts_with("us-gov-") => Some(Site::Gov),
        _ => None,
    }
}

/// Whether a code is that of a zone with a name of its own: `us-east-1-dfw-2a`, `eu-west-2-wl1-lon1`.
pub(super) fn is_zone(region: &str) -> bool {
    let parts = region.split('-').count();
    parts > if region.starts_with("us-gov-") { 4 } else { 3 }
}

/// Whether one code is that of a zone of the other.
pub(super) fn is_zone_of(zone: &[u8], region: &[u8]) -> bool {
    zone.strip_prefix(region).is_some_and(|rest| rest.starts_with(b"-"))
}
