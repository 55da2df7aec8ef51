//! Rows of offers that no provider of today publishes, and of nights that end on another day than they began.

use std::collections::BTreeSet;

use gpuledger_scrapers::contract::{Machine, Place, PricePer, PriceUnit, PublishedGpu, PublishedPrice, Terms};
use gpuledger_scrapers::listings::together;

use super::*;
use crate::frame::Cell;
use crate::normalise::currency::rates_frame;

/// A listing of one RTX 4090 on a marketplace.
fn listing(number: u32, amount: &str) -> PublishedOffer {
    PublishedOffer {
        site: None,
        sku: Some(number.to_string()),
        instance_type: None,
        offer_label: Some("verified".to_owned()),
        region: None,
        zone: None,
        gpu: PublishedGpu { label: Some("RTX 4090".to_owned()), count: Some(Ratio::from_integer(1)), ..PublishedGpu::unknown() },
        machine: Machine::default(),
        terms: Terms::of(PricingModel::OnDemand),
        price: PublishedPrice {
            amount: Decimal::from_str_exact(amount).expect("a literal decimal"),
            upfront_amount: None,
            currency_code: "USD".to_owned(),
            unit: PriceUnit::Hour,
            per: PricePer::Instance,
            text: amount.to_owned(),
            tax_included: None,
            listings: None,
        },
        place: Place { page: "listings".to_owned(), at: format!("/{number}") },
        flags: BTreeSet::new(),
    }
}

fn observed<'a>(offer: &'a PublishedOffer, at: &str) -> Observed<'a> {
    let mut sellers = gpuledger_scrapers::ALL.iter().map(|scraper| scraper.manifest());
    Observed {
        manifest: sellers.find(|manifest| manifest.published.is_some()).expect("somebody sells something"),
        scope: "all",
        source_url: "https://market.example/listings",
        raw_sha256: "",
        observed_at: at.parse().expect("an instant"),
        offer,
    }
}

/// The only row of a night, by column.
fn row(night: &str, observed: Observed<'_>) -> impl Fn(&str) -> String + use<> {
    let snapshot: SnapshotId = night.parse().expect("a night");
    let rates = rates_frame(night, &[]).expect("no rates are a frame");
    let rows = normalise(snapshot, &[observed], &rates).expect("it can be made comparable").0;
    assert_eq!(rows.height(), 1);
    move |column| Cell::at(&rows, column, 0).expect("the column exists").text()
}

#[test]
fn a_marketplace_has_the_middle_of_its_listings_as_its_price_and_the_same_id_on_every_night() {
    let night = |day: &str, listings: Vec<PublishedOffer>| {
        let (offers, skipped) = together(listings);
        assert_eq!((offers.len(), skipped.len()), (1, 0));
        row(&format!("{day}T02-00-00Z"), observed(&offers[0], &format!("{day}T02:00:10Z")))
    };
    let first = night("2026-11-01", vec![listing(101, "0.34"), listing(102, "0.36")]);
    let second = night("2026-11-02", vec![listing(202, "0.36"), listing(201, "0.34")]);
    for (column, text) in [
        ("published_amount", "0.35"),
        ("listing_amount_min", "0.34"),
        ("listing_amount_max", "0.36"),
        ("listing_count", "2"),
        ("price_usd_per_gpu_hour", "0.35"),
        ("sku", ""),
    ] {
        assert_eq!((first(column).as_str(), second(column).as_str()), (text, text), "{column}");
    }
    assert_eq!(first("offer_id"), second("offer_id"));
    let vendors = row("2026-11-01T02-00-00Z", observed(&listing(7, "0.4"), "2026-11-01T02:00:10Z"));
    assert_eq!((vendors("listing_count").as_str(), vendors("listing_amount_min").as_str()), ("", ""));
    let amounts = together(vec![listing(1, "0.1"), listing(2, "0.2"), listing(3, "9")]).0[0].price.listings;
    assert_eq!(amounts.map(|listings| listings.amount_median.to_string()).as_deref(), Some("0.2"), "an outlier moves nothing");
}

#[test]
fn a_night_that_ends_on_the_next_day_is_of_the_day_it_began_on() {
    for observed_at in ["2026-01-04T23:59:55Z", "2026-01-05T00:03:00Z", "2026-01-05T08:03:00+08:00"] {
        let row = row("2026-01-04T23-59-50Z", observed(&listing(1, "0.34"), observed_at));
        assert_eq!(row("snapshot_date"), "2026-01-04", "{observed_at}");
        assert_eq!(row("snapshot_id"), "2026-01-04T23-59-50Z", "{observed_at}");
    }
}

#[test]
fn an_id_holds_no_price_number_or_stock_and_tells_everything_else_apart() {
    let id = |change: &dyn Fn(&mut PublishedOffer)| {
        let mut offer = listing(1, "0.34");
        change(&mut offer);
        row("2026-11-01T02-00-00Z", observed(&offer, "2026-11-01T02:00:10Z"))("offer_id")
    };
    let plain = id(&|_| {});
    let same: [&dyn Fn(&mut PublishedOffer); 4] = [
        &|offer| offer.sku = Some("another".to_owned()),
        &|offer| offer.price.amount = Decimal::ONE,
        &|offer| offer.terms.availability = Some(gpuledger_scrapers::contract::Availability::SoldOut),
        &|offer| offer.place.at = "/9".to_owned(),
    ];
    for (index, change) in same.iter().enumerate() {
        assert_eq!(id(change), plain, "change {index}");
    }
    let other: [&dyn Fn(&mut PublishedOffer); 8] = [
        &|offer| offer.region = Some("SE".to_owned()),
        &|offer| offer.zone = Some("use1-az4".to_owned()),
        &|offer| offer.offer_label = Some("community".to_owned()),
        &|offer| offer.gpu.count = Some(Ratio::from_integer(8)),
        &|offer| offer.terms.pricing_model = PricingModel::Spot,
        &|offer| offer.terms.is_promotion = true,
        &|offer| offer.terms.os = gpuledger_scrapers::contract::Os::Windows,
        &|offer| offer.terms.licence = Some("byol".to_owned()),
    ];
    let ids: BTreeSet<String> = other.iter().map(|change| id(change)).chain([plain]).collect();
    assert_eq!(ids.len(), other.len() + 1);
}
