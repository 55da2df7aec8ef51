//! RunPod's list of GPU types, asked of <https://api.runpod.io/graphql> without a key: what one GPU costs for an hour in the
//! secure cloud, in the community cloud, for a term and in a cluster, in US dollars before tax.
//!
//! - RunPod sets the price of a type in each cloud, and hosts do not: a row is a price of RunPod's and no middle of listings. It
//!   is linear, so that two GPUs cost twice as much as one, and only one is published.
//! - The two clouds are two plans and never one price, not even where the page for people shows the cheaper as its floor.
//! - A price of 0.5, sometimes of 1, stands where there is no market. The field that says whether a cloud has the type is what
//!   makes a price of that cloud one; the amount alone never does. Where nothing is left of a type, and of spot, of terms and of
//!   clusters, of which no field says it, 0.5 and 1 are left out.
//! - A spot price that equals the price on demand is none: since 2026 most do.
//! - A term of a week is left out, because a commitment is counted in months.
//! - Slices of a card (MIG) are in the hardware table. A slice that is not there is published without card and share.
//! - Errors arrive with status 200, also beside data.

#[cfg(test)]
mod oracles;
#[cfg(test)]
mod tests;

use std::sync::LazyLock;

use rust_decimal::Decimal;

use crate::contract::{
    Availability, GpuShare, Page, Parsed, PricePer, PricingModel, PublishedGpu, PublishedOffer, PublishedPrice, ScrapeError,
    Scraper, SkipReason, Terms, UNKNOWN_HARDWARE,
};
use crate::hardware::{Hardware, KnownMachine};
use crate::json::{self, Object, Value};
use crate::manifest::Manifest;
use crate::money;

/// The source.
pub struct Runpod;

static MANIFEST: LazyLock<Manifest> =
    LazyLock::new(|| Manifest::parse(include_str!("manifest.toml")).expect("the manifest beside this file reads"));

static HARDWARE: LazyLock<Hardware> =
    LazyLock::new(|| Hardware::parse(include_str!("hardware.toml")).expect("the hardware table beside this file reads"));

/// The row that stands for no card.
const NO_CARD: &str = "unknown";

/// GPUs of a node of a cluster, of which the price of a cluster is one.
const GPUS_PER_CLUSTER_NODE: u32 = 8;

/// One of the two clouds.
struct Cloud {
    plan: &'static str,
    is_there: &'static str,
    on_demand: &'static str,
    spot: &'static str,
    stock: &'static str,
    absent: &'static str,
}

const SECURE: Cloud = Cloud {
    plan: "secure_cloud",
    is_there: "secureCloud",
    on_demand: "securePrice",
    spot: "secureSpotPrice",
    stock: "secureLowest",
    absent: "not in the secure cloud",
};

const COMMUNITY: Cloud = Cloud {
    plan: "community_cloud",
    is_there: "communityCloud",
    on_demand: "communityPrice",
    spot: "communitySpotPrice",
    stock: "communityLowest",
    absent: "not in the community cloud",
};

/// Fields of prices for a term and their months.
const TERMS: [(&str, u32); 4] = [("oneMonthPrice", 1), ("threeMonthPrice", 3), ("sixMonthPrice", 6), ("oneYearPrice", 12)];

impl Scraper for Runpod {
    fn manifest(&self) -> &'static Manifest {
        &MANIFEST
    }

    fn machines(&self) -> Vec<KnownMachine> {
        HARDWARE.machines()
    }

    fn parse(&self, pages: &[Page]) -> Result<Parsed, ScrapeError> {
        let mut parsed = Parsed::default();
        for page in pages {
            for value in types(page)? {
                read_type(&value, &mut parsed);
            }
        }
        Ok(parsed.with_one_price_each(|offer| {
            let terms = &offer.terms;
            (offer.offer_label.clone(), terms.plan.clone(), terms.pricing_model, terms.commitment_months)
        }))
    }
}

/// The rows of the list, once the answer states no error.
fn types(page: &Page) -> Result<Vec<Value<'_>>, ScrapeError> {
    let document = json::document(page)?;
    if let Some(errors) = document.optional("errors") {
        let text = json::start_of(errors.characters());
        return Err(ScrapeError::ErrorAnswer { page: page.name.clone(), at: "/errors".to_owned(), text });
    }
    let list = document.field("data")?.object()?.field("gpuTypes")?;
    let types = list.list()?;
    if types.is_empty() {
        return Err(ScrapeError::NothingFound { page: page.name.clone(), at: list.place().at });
    }
    Ok(types)
}

fn read_type(value: &Value<'_>, parsed: &mut Parsed) {
    let row = match value.object() {
        Ok(row) => row,
        Err(error) => return parsed.take("a type", value.place(), Err(error.into())),
    };
    let id = match row.text("id") {
        // The same type may stand under a second id with another blank in it.
        Ok(id) => id.split_whitespace().collect::<Vec<_>>().join(" "),
        Err(error) => return parsed.take("a type without id", row.place(), Err(error.into())),
    };
    if id == NO_CARD {
        return parsed.leave_out("the row of no card");
    }
    if let Err(reason) = read_prices(&row, &id, parsed) {
        return parsed.take(id, row.place(), Err(reason));
    }
    row.report_unread(&MANIFEST.ignored_fields, &mut parsed.unread_fields);
}

fn read_prices(row: &Object<'_>, id: &str, parsed: &mut Parsed) -> Result<(), SkipReason> {
    let card = Card { id, gpu: gpu(row, id)? };
    let mut is_anywhere = false;
    for cloud in [&SECURE, &COMMUNITY] {
        let is_there = row.field(cloud.is_there)?.truth()?;
        let (on_demand, spot, stock) = (row.field(cloud.on_demand)?, row.optional(cloud.spot), row.optional(cloud.stock));
        if !is_there {
            parsed.leave_out(cloud.absent);
            continue;
        }
        is_anywhere = true;
        let offer = card.on_demand(cloud, &on_demand, stock);
        let spot = spot.map(|spot| card.spot(cloud, &spot, &on_demand));
        parsed.take(format!("{id}, {}", cloud.on_demand), on_demand.place(), offer);
        if let Some(spot) = spot {
            parsed.take(format!("{id}, {}", cloud.spot), row.place(), spot);
        }
    }
    let week = row.optional("oneWeekPrice").map(|price| price.decimal()).transpose()?;
    let terms = TERMS.map(|(field, months)| (field, row.optional(field), Some(months), PricingModel::Reserved));
    let cluster = ("clusterPrice", row.optional("clusterPrice"), None, PricingModel::OnDemand);
    if !is_anywhere {
        parsed.leave_out("terms and clusters of a type that is in neither cloud");
        return Ok(());
    }
    if week.is_some_and(|price| !price.is_zero()) {
        parsed.leave_out("a term of a week, and terms are counted in months");
    }
    for (field, price, months, model) in terms.into_iter().chain([cluster]) {
        let Some(price) = price else { continue };
        parsed.take(format!("{id}, {field}"), price.place(), card.without_a_cloud(&price, months, model));
    }
    Ok(())
}

/// The GPU of a type: a whole card, or a slice of one.
fn gpu(row: &Object<'_>, id: &str) -> Result<PublishedGpu, SkipReason> {
    let memory_gb = row.decimal("memoryInGb")?;
    if !id.split(' ').any(|word| word == "MIG") {
        return Ok(PublishedGpu::plain(id, 1).of_memory(memory_gb));
    }
    match HARDWARE.find(id) {
        Some((slice, _)) if slice.memory_gb == Some(memory_gb) => Ok(slice),
        Some(_) => Err(SkipReason::Contradiction(format!("a slice `{id}` does not have {memory_gb} GB"))),
        None => Ok(PublishedGpu { share: GpuShare::Derived, memory_gb: Some(memory_gb), ..PublishedGpu::unknown() }),
    }
}

/// A type whose prices are read.
struct Card<'a> {
    id: &'a str,
    gpu: PublishedGpu,
}

impl Card<'_> {
    fn on_demand(&self, cloud: &Cloud, price: &Value<'_>, stock: Option<Value<'_>>) -> Result<PublishedOffer, SkipReason> {
        let availability = stock.map(|stock| availability(&stock)).transpose()?;
        if availability == Some(Availability::SoldOut) && !price.is_null() && may_stand_for_nothing(price.decimal()?) {
            return Err(SkipReason::OutOfScope("0.5 or 1, where nothing is left"));
        }
        let terms = Terms { availability, ..Terms::of(PricingModel::OnDemand) };
        self.offer(price, Some(cloud.plan), terms)
    }

    /// The spot price, where it is one of its own.
    fn spot(&self, cloud: &Cloud, price: &Value<'_>, on_demand: &Value<'_>) -> Result<PublishedOffer, SkipReason> {
        may_be_sold(price)?;
        let (spot, on_demand) = (price.decimal()?, on_demand.decimal()?);
        if spot == on_demand {
            return Err(SkipReason::OutOfScope("a spot price that is the price on demand"));
        }
        if spot > on_demand {
            return Err(SkipReason::Contradiction(format!("spot at {spot} is dearer than on demand at {on_demand}")));
        }
        self.offer(price, Some(cloud.plan), Terms::of(PricingModel::Spot))
    }

    /// A price of which nothing says in which cloud it holds: for a term, or in a cluster.
    fn without_a_cloud(&self, price: &Value<'_>, months: Option<u32>, model: PricingModel) -> Result<PublishedOffer, SkipReason> {
        may_be_sold(price)?;
        let terms = Terms { commitment_months: months, ..Terms::of(model) };
        if months.is_some() {
            return self.offer(price, None, terms);
        }
        if self.gpu.share != GpuShare::Whole {
            return Err(SkipReason::Contradiction("a cluster of slices".to_owned()));
        }
        let node = Card { id: self.id, gpu: PublishedGpu { count: Some(GPUS_PER_CLUSTER_NODE.into()), ..self.gpu.clone() } };
        node.offer(price, Some("cluster"), terms)
    }

    fn offer(&self, value: &Value<'_>, plan: Option<&str>, terms: Terms) -> Result<PublishedOffer, SkipReason> {
        if value.is_null() {
            return Err(SkipReason::PriceMissing);
        }
        let text = value.characters().trim_matches('"');
        let amount = money::positive(value.decimal()?, text)?;
        // What is paid for is one GPU; of a slice it is the slice.
        let per = if self.gpu.share == GpuShare::Whole { PricePer::Gpu } else { PricePer::Instance };
        let price = PublishedPrice { per, ..PublishedPrice::plain(&MANIFEST, amount, text) };
        let terms = Terms { plan: plan.map(str::to_owned), ..terms };
        let mut offer = PublishedOffer::plain(self.gpu.clone(), terms, price, value.place()).called(self.id);
        offer.sku = Some(plan.map_or_else(|| self.id.to_owned(), |plan| format!("{} {plan}", self.id)));
        Ok(if self.gpu.label.is_none() { offer.marked(UNKNOWN_HARDWARE) } else { offer })
    }
}

/// Passes an amount on of which no field says that anything is sold at it, unless it is one of those that stand for no market.
fn may_be_sold(price: &Value<'_>) -> Result<(), SkipReason> {
    let amount = price.decimal()?;
    if amount.is_zero() {
        return Err(SkipReason::OutOfScope("0, which stands for no such price"));
    }
    if may_stand_for_nothing(amount) {
        return Err(SkipReason::OutOfScope("0.5 or 1, where no field says that it is sold"));
    }
    Ok(())
}

/// Whether an amount is one of those that stand where there is no market.
fn may_stand_for_nothing(amount: Decimal) -> bool {
    amount == Decimal::new(5, 1) || amount == Decimal::ONE
}

/// What is left of a type in one cloud. No word stands for nothing left.
fn availability(lowest: &Value<'_>) -> Result<Availability, SkipReason> {
    match lowest.object()?.optional_text("stockStatus")?.as_deref() {
        None => Ok(Availability::SoldOut),
        Some("Low") => Ok(Availability::Low),
        Some("Medium" | "High") => Ok(Availability::Available),
        Some(word) => Err(SkipReason::UnknownWord { what: "stock", word: word.to_owned() }),
    }
}
