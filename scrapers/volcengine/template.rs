//! The template: a tree in a text → what it says of each configuration in each region.
//!
//! Never a price, and never a card: the field that would name it has not been seen, so names of unknown fields are reported.

use std::collections::{BTreeSet, HashMap};

use rust_decimal::Decimal;

use super::{PRODUCTS, changed, nothing};
use crate::contract::{Page, Parsed, ScrapeError, SkipReason};
use crate::json::{self, Object, Value};
use crate::money;

/// Lists and objects of the tree in each other; nothing sensible is nested deeper.
const DEEPEST: usize = 48;

/// Everything that the templates of a night describe.
#[derive(Debug, Default)]
pub(super) struct Template {
    configurations: HashMap<(String, String), Configuration>,
    regions: BTreeSet<String>,
}

/// One way of buying a machine type in a region.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Configuration {
    /// `configuration_hourly`, `monthly`
    pub(super) billing_method: Option<String>,
    /// `post`, `pre`
    pub(super) pay_type: Option<String>,
    /// `2核`
    pub(super) cores: Option<String>,
    /// `8GiB`
    pub(super) memory: Option<String>,
    /// `3.84TB*1 SSD`
    pub(super) disk: Option<String>,
    /// Whether it has a field that looks like one of accelerators.
    pub(super) is_said_to_have_gpu: bool,
}

impl Template {
    /// Adds what one answer describes.
    pub(super) fn read(&mut self, page: &Page, result: &Object, parsed: &mut Parsed) -> Result<(), ScrapeError> {
        let list = result.field("List")?;
        let entries = list.list()?;
        if entries.is_empty() {
            return Err(nothing(page, &list.place().at));
        }
        for entry in entries {
            let text = entry.object()?.field("Template")?.text()?.into_owned();
            let name = format!("{}, in its text `Template`", page.name);
            let inner = Page {
                name,
                scope: page.scope.clone(),
                url: page.url.clone(),
                observed_at: page.observed_at,
                sha256: page.sha256.clone(),
                body: text.into_bytes(),
            };
            match json::root(&inner) {
                Ok(tree) => self.walk(&inner, &tree, DEEPEST, parsed)?,
                Err(_) => parsed.leave_out("template that does not read"),
            }
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.configurations.is_empty()
    }

    pub(super) fn configuration(&self, code: &str, region: &str) -> Option<&Configuration> {
        self.configurations.get(&(code.to_owned(), region.to_owned()))
    }

    pub(super) fn has_region(&self, region: &str) -> bool {
        self.regions.contains(region)
    }

    /// Whether any region's configuration of this code has a field that looks like one of accelerators.
    pub(super) fn is_said_to_have_gpu(&self, code: &str) -> bool {
        let of_code = |region: &String| self.configuration(code, region).is_some_and(|found| found.is_said_to_have_gpu);
        self.regions.iter().any(of_code)
    }

    fn walk(&mut self, page: &Page, value: &Value, depth: usize, parsed: &mut Parsed) -> Result<(), ScrapeError> {
        if depth == 0 {
            return Err(changed(page, &value.place().at, "a tree that ends", value.characters()));
        }
        if value.characters().starts_with('[') {
            return value.list()?.iter().try_for_each(|inner| self.walk(page, inner, depth - 1, parsed));
        }
        if !value.characters().starts_with('{') {
            return Ok(());
        }
        let object = value.object()?;
        let product = object.optional("Product").and_then(|product| product.text().ok());
        if product.is_some_and(|product| PRODUCTS.contains(&product.as_ref())) {
            self.take(&object, parsed);
        }
        object.values().try_for_each(|(_, inner)| self.walk(page, &inner, depth - 1, parsed))
    }

    fn take(&mut self, object: &Object, parsed: &mut Parsed) {
        let text = |name: &str| object.optional(name).and_then(|value| value.text().ok()).map(|text| text.into_owned());
        let (Some(code), Some(region), Some(abilities)) =
            (text("ConfigurationCode"), text("Region"), object.optional("AbilityAttrs").and_then(|list| list.list().ok()))
        else {
            return parsed.leave_out("entry of the template that describes no machine");
        };
        let mut found =
            Configuration { billing_method: text("BillingMethod"), pay_type: text("PayType"), ..Configuration::default() };
        for ability in abilities {
            let Ok(ability) = ability.object() else {
                parsed.unread_fields.insert("AbilityAttrs".to_owned());
                continue;
            };
            let word = |name: &str| ability.optional(name).and_then(|value| value.text().ok()).map(|text| text.into_owned());
            let (name, value) = (word("Ability").unwrap_or_default(), word("Value").filter(|value| !value.is_empty()));
            match name.as_str() {
                "vcpu" => found.cores = value,
                "memory" => found.memory = value,
                "ssd" | "hdd" => found.disk = found.disk.or(value),
                "processor" => {}
                _ => {
                    parsed.unread_fields.insert(format!("Ability `{name}`"));
                    let is_gpu = ["gpu", "npu", "显卡", "加速"].iter().any(|word| name.to_lowercase().contains(word));
                    let is_some = value.is_some_and(|value| !["0", "-", "无"].contains(&value.as_str()));
                    found.is_said_to_have_gpu |= is_gpu && is_some;
                }
            }
        }
        // Zones are no part of a price; a list of them that does not read is an empty one.
        if let Some(zones) = text("AvailableZone")
            && !zones.is_empty()
            && serde_json::from_str::<Vec<serde_json::Value>>(&zones).is_err()
        {
            parsed.leave_out("list of zones that does not read");
        }
        self.regions.insert(region.clone());
        self.configurations.insert((code, region), found);
    }
}

/// `2核` → 2, `8GiB` → 8.
pub(super) fn quantity(field: &'static str, text: &str, unit: &str) -> Result<Decimal, SkipReason> {
    let number = text.strip_suffix(unit).map(str::trim).and_then(money::decimal);
    number.ok_or_else(|| SkipReason::FieldUnreadable {
        field: field.to_owned(),
        expected: "a number and its unit",
        found: text.to_owned(),
    })
}

/// `3.84TB*1 SSD` → 3840 GB. `None` for a text of another form.
pub(super) fn disk_gb(text: &str) -> Option<Decimal> {
    let (size, disks) = text.split(' ').next()?.split_once('*')?;
    let disks: u32 = disks.parse().ok()?;
    let (size, gigabytes) = size.strip_suffix("TB").map(|size| (size, 1000)).or_else(|| Some((size.strip_suffix("GB")?, 1)))?;
    Some((money::decimal(size)? * Decimal::from(gigabytes) * Decimal::from(disks)).normalize())
}
