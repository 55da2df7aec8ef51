//! `shapes.toml` and the estimator's list of shapes → the shapes on sale, by part.
//!
//! The list decides which shapes there are; the table has what the list does not say or says wrongly. Never a shape
//! whose number of GPUs the two state differently.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use num_rational::Ratio;
use rust_decimal::Decimal;
use serde::Deserialize;

use super::{Document, MANIFEST};
use crate::contract::{GpuShare, Machine, Page, Parsed, PublishedGpu, ScrapeError, SkipReason, UNKNOWN_HARDWARE};
use crate::hardware::{self, KnownMachine};
use crate::json::{Object, Value};

pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("shapes.toml")).expect("the table of shapes beside this file reads"));

/// The parts and their documented shapes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Where the shapes were read.
    source: String,
    #[serde(rename = "part")]
    pub(super) parts: Vec<Part>,
}

/// One GPU part of the price list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub(super) number: String,
    /// How its display name ends.
    pub(super) listed_as: String,
    pub(super) gpu: String,
    pub(super) gpu_memory_gb: u32,
    pub(super) interconnect: Option<String>,
    #[serde(default = "two")]
    pub(super) vcpus_per_ocpu: u32,
    #[serde(default, rename = "shape")]
    pub(super) shapes: Vec<Shape>,
}

/// One documented shape.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    pub(super) name: String,
    gpus: u32,
    ocpus: u32,
    system_memory_gib: u32,
    local_disk_gb: Option<u32>,
    fabric_gbit_per_s: Option<u32>,
}

/// One shape on sale.
#[derive(Debug, Clone)]
pub(super) struct ShapeOffer {
    pub(super) name: String,
    pub(super) gpus: u32,
    pub(super) ocpus: Option<Decimal>,
    pub(super) system_memory_gib: Option<Decimal>,
    pub(super) local_disk_gb: Option<Decimal>,
    pub(super) fabric_gbit_per_s: Option<u32>,
    pub(super) is_bare_metal: bool,
    pub(super) flags: BTreeSet<&'static str>,
}

fn two() -> u32 {
    2
}

impl Table {
    pub(super) fn part(&self, number: &str) -> Option<&Part> {
        self.parts.iter().find(|part| part.number == number)
    }

    /// Every documented shape.
    pub(super) fn machines(&self) -> Vec<KnownMachine> {
        let known = |part: &Part, shape: &Shape| KnownMachine {
            instance_type: shape.name.clone(),
            gpu: part.gpus(shape.gpus, shape.fabric_gbit_per_s),
            machine: Machine {
                vcpus: Some(Decimal::from(shape.ocpus * part.vcpus_per_ocpu)),
                system_memory_gib: Some(shape.system_memory_gib.into()),
                local_disk_gb: shape.local_disk_gb.map(Decimal::from),
                is_bare_metal: Some(shape.name.starts_with("BM.")),
            },
            source: self.source.clone(),
        };
        self.parts.iter().flat_map(|part| part.shapes.iter().map(move |shape| known(part, shape))).collect()
    }

    fn shape(&self, name: &str) -> Option<(&Part, &Shape)> {
        self.parts
            .iter()
            .flat_map(|part| part.shapes.iter().map(move |shape| (part, shape)))
            .find(|(_, shape)| shape.name == name)
    }
}

impl Part {
    /// So many of the part's GPUs.
    pub(super) fn gpus(&self, count: u32, fabric_gbit_per_s: Option<u32>) -> PublishedGpu {
        PublishedGpu {
            label: Some(self.gpu.clone()),
            count: Some(Ratio::from_integer(count)),
            share: GpuShare::Whole,
            memory_gb: Some(Decimal::from(self.gpu_memory_gb)),
            form_factor: None,
            interconnect: self.interconnect.clone(),
            fabric_gbit_per_s,
        }
    }
}

impl Shape {
    /// The shape as documented, where no list says whether it is on sale.
    pub(super) fn offer(&self) -> ShapeOffer {
        ShapeOffer {
            name: self.name.clone(),
            gpus: self.gpus,
            ocpus: Some(self.ocpus.into()),
            system_memory_gib: Some(self.system_memory_gib.into()),
            local_disk_gb: self.local_disk_gb.map(Decimal::from),
            fabric_gbit_per_s: self.fabric_gbit_per_s,
            is_bare_metal: self.name.starts_with("BM."),
            flags: BTreeSet::from(["shape_from_table"]),
        }
    }
}

/// The shapes on sale by number of their part, or `None` where no list of shapes is among the documents. `products` are
/// the parts of the price list, each with whether it is in the category of GPUs.
pub(super) fn listed(
    documents: &[(&Page, Document)],
    products: &HashMap<Cow<str>, bool>,
    parsed: &mut Parsed,
) -> Result<Option<HashMap<String, Vec<ShapeOffer>>>, ScrapeError> {
    let mut by_part: HashMap<String, Vec<ShapeOffer>> = HashMap::new();
    let mut names = BTreeSet::new();
    let mut list = None;
    for (page, document) in documents {
        let Document::Shapes { items } = document else { continue };
        list = Some(page);
        for item in items {
            match shape(item, products, &mut names, parsed) {
                Ok((part, shape)) => by_part.entry(part).or_default().push(shape),
                Err(reason) => parsed.take(label(item), item.place(), Err(reason)),
            }
        }
    }
    match list {
        Some(page) if by_part.is_empty() => {
            Err(ScrapeError::NothingFound { page: page.name.clone(), at: "/items, of GPU shapes on sale".to_owned() })
        }
        Some(_) => Ok(Some(by_part)),
        None => Ok(None),
    }
}

fn label(item: &Value) -> String {
    let name = item.object().and_then(|item| item.text("name").map(|name| name.into_owned()));
    name.unwrap_or_else(|_| "a shape without a name".to_owned())
}

fn shape(
    item: &Value,
    products: &HashMap<Cow<str>, bool>,
    names: &mut BTreeSet<String>,
    parsed: &mut Parsed,
) -> Result<(String, ShapeOffer), SkipReason> {
    let item = item.object()?;
    let sub_type = word(&item, "subType")?;
    if sub_type != "gpu" && item.optional_decimal("gpuQty")?.is_none_or(|gpus| gpus.is_zero()) {
        return Err(SkipReason::OutOfScope("not a GPU shape"));
    }
    if item.field("hidden")?.truth()? {
        return Err(SkipReason::OutOfScope("hidden GPU shape"));
    }
    if item.text("status")? != "ACTIVE" {
        return Err(SkipReason::OutOfScope("GPU shape that is not active"));
    }
    let name = item.text("name")?;
    let name = name.split_once(" (").map_or(name.as_ref(), |(name, _)| name).trim();
    let (number, ocpus) = gpu_part(&item, name)?;
    let gpus = gpu_count(&item, name)?;
    let part = TABLE.part(&number);
    match (part, products.get(number.as_str())) {
        (None, Some(false)) => return Err(SkipReason::OutOfScope(super::OTHER_CATEGORY)),
        (None, None) => return Err(SkipReason::UnknownMachine { instance_type: name.to_owned() }),
        (Some(_), None) => return Err(SkipReason::PriceMissing),
        (_, Some(_)) => {}
    }
    let is_bare_metal = match word(&item, "shapeType")?.as_str() {
        "bm" => true,
        "vm" => false,
        word => return Err(SkipReason::UnknownWord { what: "type of shape", word: word.to_owned() }),
    };
    let memory_gib = item.optional_decimal("bundleMemoryQty")?;
    let mut offer = ShapeOffer {
        name: name.to_owned(),
        gpus,
        ocpus,
        system_memory_gib: memory_gib,
        local_disk_gb: None,
        fabric_gbit_per_s: None,
        is_bare_metal,
        flags: if part.is_none() { BTreeSet::from([UNKNOWN_HARDWARE]) } else { BTreeSet::new() },
    };
    if let Some((documented_part, documented)) = TABLE.shape(name) {
        let gpu = part.map_or("a GPU of another part", |part| &part.gpu);
        if documented_part.gpu != gpu || documented.gpus != gpus {
            return Err(SkipReason::Contradiction(format!(
                "{name}: {gpus} × {gpu} by the list of shapes, {} × {} by the table",
                documented.gpus, documented_part.gpu
            )));
        }
        let known = documented.offer();
        let differs = |listed: Option<Decimal>, known: Option<Decimal>| listed.is_some() && listed != known;
        if differs(ocpus, known.ocpus) || differs(memory_gib, known.system_memory_gib) {
            offer.flags.insert("machine_size_disputed");
        }
        offer = ShapeOffer { is_bare_metal, flags: offer.flags, ..known };
    }
    if !names.insert(name.to_owned()) {
        return Err(SkipReason::Contradiction(format!("{name} stands twice in the list of shapes")));
    }
    item.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
    Ok((number, offer))
}

/// The part a GPU shape is billed by, and its cores. The rate of the GPU part includes cores and memory, so a shape that
/// is billed by further parts is another kind of offer.
fn gpu_part(item: &Object, name: &str) -> Result<(String, Option<Decimal>), SkipReason> {
    let products = item.field("products")?.list()?;
    let [part] = products.as_slice() else {
        return Err(SkipReason::Contradiction(format!("{name} is billed by {} parts instead of its GPU part", products.len())));
    };
    let part = part.object()?;
    match word(&part, "type")?.as_str() {
        "ocpu" => Ok((part.text("partNumber")?.into_owned(), part.optional_decimal("qty")?)),
        word => Err(SkipReason::UnknownWord { what: "type of part", word: word.to_owned() }),
    }
}

/// The number of GPUs, which is also the number at the name's end.
fn gpu_count(item: &Object, name: &str) -> Result<u32, SkipReason> {
    let stated = item.decimal("gpuQty")?;
    let named = name.rsplit('.').next().and_then(|end| end.parse::<u32>().ok());
    match hardware::count_of(stated) {
        Some(count) if count.is_integer() && named == Some(count.to_integer()) => Ok(count.to_integer()),
        _ => Err(SkipReason::Contradiction(format!("gpuQty of {name} is {stated}, which its name does not end in"))),
    }
}

/// The word in an object that holds nothing else of interest. `{"value": "bm"}`
fn word(object: &Object, name: &str) -> Result<String, SkipReason> {
    Ok(object.field(name)?.object()?.text("value")?.into_owned())
}
