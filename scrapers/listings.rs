//! Marketplaces: many people list equal machines, each at a price of its own.
//!
//! In: offers, one a listing. Out: offers, one for each thing that can be rented, with the number of its listings, the lowest,
//! the middle and the highest amount. The number of a listing never leaves this module: tomorrow the same machine has another.

use std::collections::BTreeMap;

use rust_decimal::Decimal;

use crate::contract::{Machine, Place, PublishedOffer, SkipReason, Skipped};

/// The amounts of equal listings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listings {
    /// How many there are. 12
    pub count: u32,
    /// The lowest amount, in the currency of the price. 0.34
    pub amount_min: Decimal,
    /// The middle amount: of an even number the mean of the two in the middle, exactly. 0.35
    pub amount_median: Decimal,
    /// The highest amount, in the currency of the price. 0.36
    pub amount_max: Decimal,
}

impl Listings {
    /// The listings of these amounts, in any order; `None` where there are none, or where the mean of the two in the middle has
    /// more digits than a decimal keeps. Nothing is rounded.
    #[must_use]
    pub fn of(mut amounts: Vec<Decimal>) -> Option<Self> {
        amounts.sort_unstable();
        let (first, last) = (*amounts.first()?, *amounts.last()?);
        let (lower, upper) = (amounts[(amounts.len() - 1) / 2], amounts[amounts.len() / 2]);
        Some(Self {
            count: u32::try_from(amounts.len()).ok()?,
            amount_min: first.normalize(),
            amount_median: mean(lower, upper)?,
            amount_max: last.normalize(),
        })
    }
}

/// The exact mean of two amounts.
fn mean(a: Decimal, b: Decimal) -> Option<Decimal> {
    let scale = a.scale().max(b.scale());
    let scaled = |amount: Decimal| amount.mantissa().checked_mul(10_i128.checked_pow(scale - amount.scale())?);
    // A half is five tenths, so one more digit is always enough.
    let tenths = scaled(a)?.checked_add(scaled(b)?)?.checked_mul(5)?;
    Decimal::try_from_i128_with_scale(tenths, scale + 1).ok().map(|mean| mean.normalize())
}

/// What a listing is of, as text that two listings share only if one can be rented in the other's place.
fn what(offer: &PublishedOffer) -> String {
    let (gpu, terms, price) = (&offer.gpu, &offer.terms, &offer.price);
    let card = (&gpu.label, gpu.count, gpu.share, gpu.memory_gb.map(|gb| gb.normalize()), &gpu.form_factor);
    let place = (offer.site, &offer.region, &offer.zone);
    let how = (terms.pricing_model, terms.commitment_months, terms.upfront, terms.os, &terms.licence, &terms.plan);
    let rest = (terms.tenancy, terms.is_promotion, offer.machine.is_bare_metal);
    let paid = (&price.currency_code, price.unit, price.per, price.tax_included);
    format!("{:?}", (card, place, &offer.instance_type, &offer.offer_label, how, rest, paid))
}

/// Puts equal listings together: one offer a bucket of card, count, place, tier and terms, at its middle amount.
///
/// The number of a listing stands in `sku` at most, and is dropped. The tier, where the marketplace has some, is the
/// `offer_label`. The place of the offer is that of its lowest listing. What the machines of a bucket do not agree on (virtual
/// CPUs, memory, disks, stock, the shortest time) is not stated.
#[must_use]
pub fn together(listings: Vec<PublishedOffer>) -> (Vec<PublishedOffer>, Vec<Skipped>) {
    let mut buckets: BTreeMap<String, Vec<PublishedOffer>> = BTreeMap::new();
    for listing in listings {
        buckets.entry(what(&listing)).or_default().push(listing);
    }
    let (mut offers, mut skipped) = (Vec::new(), Vec::new());
    for mut bucket in buckets.into_values() {
        bucket.sort_by(|a, b| dearness(a).cmp(&dearness(b)));
        let lowest = bucket[0].clone();
        if bucket.iter().any(|listing| listing.price.upfront_amount.is_some()) {
            let reason = SkipReason::Undecoded("a listing with an amount paid at the start");
            skipped.push(Skipped { place: lowest.place, label: lowest.offer_label.unwrap_or_default(), reason });
            continue;
        }
        match Listings::of(bucket.iter().map(|listing| listing.price.amount).collect()) {
            Some(listings) => offers.push(one_offer(lowest, &bucket, listings)),
            None => skipped.push(Skipped {
                reason: SkipReason::PriceUnreadable { text: lowest.price.text.clone() },
                place: lowest.place,
                label: lowest.offer_label.unwrap_or_default(),
            }),
        }
    }
    (offers, skipped)
}

/// The listings behind an offer, from the lowest to the highest: those that can be rented in the place of the listing at its
/// place. None where no listing stands there.
#[must_use]
pub fn behind<'a>(listings: &'a [PublishedOffer], place: &Place) -> Vec<&'a PublishedOffer> {
    let Some(lowest) = listings.iter().find(|listing| listing.place == *place).map(what) else { return Vec::new() };
    let mut behind: Vec<_> = listings.iter().filter(|listing| what(listing) == lowest).collect();
    behind.sort_by(|a, b| dearness(a).cmp(&dearness(b)));
    behind
}

/// What listings are ordered by.
fn dearness(listing: &PublishedOffer) -> (Decimal, &Place) {
    (listing.price.amount, &listing.place)
}

fn one_offer(lowest: PublishedOffer, bucket: &[PublishedOffer], listings: Listings) -> PublishedOffer {
    let mut offer = lowest;
    offer.sku = None;
    offer.machine = Machine {
        vcpus: shared(bucket, |listing| listing.machine.vcpus),
        system_memory_gib: shared(bucket, |listing| listing.machine.system_memory_gib),
        local_disk_gb: shared(bucket, |listing| listing.machine.local_disk_gb),
        is_bare_metal: offer.machine.is_bare_metal,
    };
    offer.gpu.interconnect = shared(bucket, |listing| listing.gpu.interconnect.clone());
    offer.gpu.fabric_gbit_per_s = shared(bucket, |listing| listing.gpu.fabric_gbit_per_s);
    offer.terms.availability = shared(bucket, |listing| listing.terms.availability);
    offer.terms.min_billing_seconds = shared(bucket, |listing| listing.terms.min_billing_seconds);
    offer.terms.valid_from = shared(bucket, |listing| listing.terms.valid_from);
    offer.flags = bucket.iter().flat_map(|listing| listing.flags.iter().copied()).collect();
    let lines = bucket.iter().map(|listing| listing.price.text.as_str()).collect::<Vec<_>>();
    offer.price.text =
        if lines.len() == 1 { lines[0].to_owned() } else { format!("{} … {}", lines[0], lines[lines.len() - 1]) };
    offer.price.amount = listings.amount_median;
    offer.price.listings = Some(listings);
    offer
}

/// What all listings say alike; nothing where they differ.
fn shared<T: PartialEq>(bucket: &[PublishedOffer], read: impl Fn(&PublishedOffer) -> Option<T>) -> Option<T> {
    let first = read(&bucket[0])?;
    bucket.iter().all(|listing| read(listing).as_ref() == Some(&first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use num_rational::Ratio;
    use proptest::prelude::*;

    use super::*;
    use crate::contract::{GpuShare, PricePer, PriceUnit, PricingModel, PublishedGpu, PublishedPrice, Terms};

    fn dec(text: &str) -> Decimal {
        Decimal::from_str_exact(text).expect("a literal decimal")
    }

    /// A listing as a marketplace's parser would read it: its number, its card and its amount.
    fn listing(number: u32, card: &str, amount: &str) -> PublishedOffer {
        PublishedOffer {
            site: None,
            sku: Some(number.to_string()),
            instance_type: None,
            offer_label: Some("verified".to_owned()),
            region: Some("SE".to_owned()),
            zone: None,
            gpu: PublishedGpu {
                label: Some(card.to_owned()),
                count: Some(Ratio::from_integer(1)),
                memory_gb: Some(dec("24")),
                share: GpuShare::Whole,
                ..PublishedGpu::unknown()
            },
            machine: Machine { vcpus: Some(Decimal::from(number % 7)), ..Machine::default() },
            terms: Terms::of(PricingModel::OnDemand),
            price: PublishedPrice {
                amount: dec(amount),
                upfront_amount: None,
                currency_code: "USD".to_owned(),
                unit: PriceUnit::Hour,
                per: PricePer::Instance,
                text: amount.to_owned(),
                tax_included: None,
                listings: None,
            },
            place: Place { page: "listings".to_owned(), at: format!("/offers/{number}") },
            flags: BTreeSet::new(),
        }
    }

    fn one(listings: Vec<PublishedOffer>) -> PublishedOffer {
        let (mut offers, skipped) = together(listings);
        assert_eq!((offers.len(), skipped.len()), (1, 0), "{offers:?}");
        offers.remove(0)
    }

    #[test]
    fn the_same_machines_under_other_numbers_are_the_same_offer_at_the_same_price() {
        let mut first = one(vec![listing(101, "RTX 4090", "0.34"), listing(102, "RTX 4090", "0.36")]);
        let second = one(vec![listing(202, "RTX 4090", "0.36"), listing(201, "RTX 4090", "0.34")]);
        let listings = first.price.listings.expect("it has listings");
        let amounts = (listings.amount_min, listings.amount_median, listings.amount_max);
        assert_eq!((listings.count, amounts), (2, (dec("0.34"), dec("0.35"), dec("0.36"))));
        assert_eq!((first.price.amount, first.sku.as_deref()), (dec("0.35"), None));
        assert_eq!(first.place.at, "/offers/101", "the lowest listing is the one to look up");
        first.place = second.place.clone();
        // The two machines had unlike numbers of virtual CPUs in each night, so none is stated.
        assert_eq!(first, second);
        assert_eq!(first.machine.vcpus, None);
    }

    #[test]
    fn the_listings_behind_an_offer_lead_back_to_every_amount_of_it() {
        let listings = [listing(1, "RTX 4090", "0.36"), listing(2, "RTX 3090", "0.2"), listing(3, "RTX 4090", "0.34")];
        let (offers, _) = together(listings.to_vec());
        let offer = offers.iter().find(|offer| offer.gpu.label.as_deref() == Some("RTX 4090")).expect("its card is there");
        let amounts: Vec<_> = behind(&listings, &offer.place).into_iter().map(|listing| listing.price.amount).collect();
        assert_eq!(amounts, [dec("0.34"), dec("0.36")]);
        assert!(behind(&listings, &Place { page: "listings".to_owned(), at: "/offers/9".to_owned() }).is_empty());
    }

    #[test]
    fn cards_counts_places_tiers_and_terms_are_never_put_together() {
        let changes: [fn(&mut PublishedOffer); 9] = [
            |other| other.gpu.label = Some("RTX 3090".to_owned()),
            |other| other.gpu.count = Some(Ratio::from_integer(2)),
            |other| other.gpu.memory_gb = Some(dec("48")),
            |other| other.region = Some("NO".to_owned()),
            |other| other.offer_label = Some("community".to_owned()),
            |other| other.terms.pricing_model = PricingModel::Spot,
            |other| other.terms.commitment_months = Some(1),
            |other| other.price.currency_code = "EUR".to_owned(),
            |other| other.price.per = PricePer::Gpu,
        ];
        for (index, change) in changes.into_iter().enumerate() {
            let mut other = listing(102, "RTX 4090", "0.36");
            change(&mut other);
            let (offers, _) = together(vec![listing(101, "RTX 4090", "0.34"), other]);
            assert_eq!(offers.len(), 2, "change {index}");
            assert!(offers.iter().all(|offer| offer.price.listings.is_some_and(|listings| listings.count == 1)));
        }
    }

    #[test]
    fn a_mean_of_more_digits_than_a_decimal_keeps_is_no_price() {
        let long = Decimal::from_i128_with_scale(1, 28);
        assert_eq!(Listings::of(vec![long, long * Decimal::from(2)]), None);
        assert_eq!(Listings::of(Vec::new()), None);
    }

    proptest! {
        #[test]
        fn listings_in_any_order_say_the_same_and_the_middle_lies_between(units in prop::collection::vec((1_i64..=99_999, 0_u32..=6), 1..9)) {
            let amounts: Vec<Decimal> = units.iter().map(|(units, scale)| Decimal::new(*units, *scale)).collect();
            let listings = Listings::of(amounts.clone()).expect("these digits fit");
            let turned = Listings::of(amounts.iter().rev().copied().collect());
            prop_assert_eq!(Some(listings), turned);
            prop_assert!(listings.amount_min <= listings.amount_median && listings.amount_median <= listings.amount_max);
            let below = amounts.iter().filter(|amount| **amount < listings.amount_median).count();
            let above = amounts.iter().filter(|amount| **amount > listings.amount_median).count();
            prop_assert!(below * 2 <= amounts.len() && above * 2 <= amounts.len());
        }
    }
}
