//! The name of a size, `gpu-<card>x<number>-<memory>gb`, and the words at its end, which alone say how the size is bought.
//!
//! In: the name. Out: the number of cards, the way of buying and the plan. Never a way of buying for a word nobody has read.

use crate::contract::{PricingModel, SkipReason, Terms};

/// What the name of a size says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Slug {
    /// Cards of the Droplet.
    pub(super) count: u32,
    /// How it is bought. The same machine with another cooling (`-lc`) is a plan of its own, for it has a price of its own.
    pub(super) terms: Terms,
}

/// Reads a name: nothing at its end is on demand, `-spot` is spot.
///
/// # Errors
/// When it is sold by contract only, which is out of scope, or has a form or a word that nobody has read.
pub(super) fn read(slug: &str) -> Result<Slug, SkipReason> {
    let unknown = || SkipReason::UnknownWord { what: "name of a size", word: slug.to_owned() };
    let mut words = slug.split('-');
    let (Some("gpu"), Some(card), Some(memory)) = (words.next(), words.next(), words.next()) else {
        return Err(unknown());
    };
    let (model, count) = card.rsplit_once('x').ok_or_else(unknown)?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_digit());
    if model.is_empty() || !is_number(count) || !memory.strip_suffix("gb").is_some_and(is_number) {
        return Err(unknown());
    }
    let count = count.parse::<u32>().ok().filter(|count| *count > 0).ok_or_else(unknown)?;
    let rest: Vec<_> = words.collect();
    let (plan, rest) = match rest.split_first() {
        Some((&"lc", rest)) => (Some("lc".to_owned()), rest),
        _ => (None, rest.as_slice()),
    };
    let model = match rest {
        [] => PricingModel::OnDemand,
        ["spot"] => PricingModel::Spot,
        ["contracted"] | ["fabric", "contracted"] => return Err(SkipReason::OutOfScope("sold by contract only")),
        _ => return Err(unknown()),
    };
    Ok(Slug { count, terms: Terms { plan, ..Terms::of(model) } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_how_the_size_is_bought() {
        let of = |slug| read(slug).map(|slug| (slug.count, slug.terms.pricing_model, slug.terms.plan));
        assert_eq!(of("gpu-h100x8-640gb"), Ok((8, PricingModel::OnDemand, None)));
        assert_eq!(of("gpu-l40sx1-48gb"), Ok((1, PricingModel::OnDemand, None)));
        assert_eq!(of("gpu-mi350x1-288gb-spot"), Ok((1, PricingModel::Spot, None)));
        assert_eq!(of("gpu-mi350x8-2304gb-spot"), Ok((8, PricingModel::Spot, None)));
        assert_eq!(of("gpu-b300x8-2304gb-lc-spot"), Ok((8, PricingModel::Spot, Some("lc".to_owned()))));
        assert_eq!(of("gpu-b300x8-2304gb-lc"), Ok((8, PricingModel::OnDemand, Some("lc".to_owned()))));
    }

    #[test]
    fn a_contract_is_out_of_scope_and_an_unknown_word_is_no_price_on_demand() {
        let plain = ["gpu-h200x8-1128gb-contracted", "gpu-h200x8-1128gb-fabric-contracted", "gpu-b300x8-2304gb-lc-contracted"];
        for slug in plain {
            assert!(matches!(read(slug), Err(SkipReason::OutOfScope(_))), "{slug}");
        }
        let unknown = [
            "gpu-h100x8-640gb-preview",
            "gpu-h100x8-640gb-spot-lc",
            "gpu-h100x8-640gb-fabric",
            "gpu-h100x8-640gb-",
            "gpu-h100x0-640gb",
            "gpu-h100-80gb",
            "gpu-h100x+1-80gb",
            "gpu-h100x1-80",
            "gpu-h100x1-spot",
            "h100x1-80gb",
        ];
        for slug in unknown {
            assert!(matches!(read(slug), Err(SkipReason::UnknownWord { .. })), "{slug}");
        }
    }
}
