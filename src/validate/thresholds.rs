//! The thresholds of the rules, from `thresholds.toml` beside this file, built into the program.
//!
//! A key that nobody knows is refused, and so is a threshold without a reason. Nothing here judges.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::normalise::gpu::GpuModels;

/// A threshold and why it is what it is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold<T> {
    /// The figure, in the unit that its name says.
    pub value: T,
    /// The reason, for people.
    pub why: String,
}

/// Bounds of prices of one class of cards, in USD for one whole GPU for one hour.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceClass {
    /// What the cards have in common. `cards for desks`
    pub name: String,
    /// Families of `gpu_models.toml`; none for the class of all others.
    pub families: Vec<String>,
    /// Lowest plausible list price. 0.12
    pub list_usd_per_gpu_hour_min: f64,
    /// Highest plausible list price. 120
    pub list_usd_per_gpu_hour_max: f64,
    /// Lowest plausible price of a market. 0.015
    pub market_usd_per_gpu_hour_min: f64,
    /// Highest plausible price of a market. 120
    pub market_usd_per_gpu_hour_max: f64,
    /// What was seen.
    pub why: String,
}

macro_rules! thresholds {
    ($($(#[$meaning:meta])* $name:ident: $kind:ty,)*) => {
        /// All thresholds. Each is explained where it is set, in `thresholds.toml`.
        #[derive(Debug, Clone, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Thresholds {
            $($(#[$meaning])* pub $name: Threshold<$kind>,)*
            /// Bounds of prices by class of card.
            #[serde(rename = "class")]
            pub classes: Vec<PriceClass>,
            /// The class of each model of `gpu_models.toml`, by its place there.
            #[serde(skip)]
            class_of_model: Vec<usize>,
        }

        impl Thresholds {
            /// Every threshold's name and reason.
            #[must_use]
            pub fn reasons(&self) -> Vec<(&'static str, &str)> {
                vec![$((stringify!($name), self.$name.why.as_str()),)*]
            }
        }
    };
}

thresholds! {
    /// Share of rows held back above which a scope or provider is refused, in percent.
    held_back_percent_max: usize,
    /// Rows held back from which on a scope by itself is refused.
    scope_held_back_rows_min: usize,
    /// Offers that a scope must still have of those of its last complete night, in percent.
    kept_offers_percent_min: usize,
    /// Offers of the last complete night from which on that share is asked for.
    kept_offers_rows_min: usize,
    /// Offers against the last complete night from which on growth is noted, in percent.
    growth_noted_percent_min: usize,
    /// Factor of a list price from which on a move is a jump.
    list_jump_factor_min: f64,
    /// Factor of a market price from which on a move is a jump.
    market_jump_factor_min: f64,
    /// Move of a price below which it did not move, in percent.
    moved_percent_min: f64,
    /// Jumps of a scope that are named one by one.
    jump_rows_named_max: usize,
    /// Share of a scope's list prices that jump at once from which on the scope is refused, in percent.
    scope_jumped_percent_min: usize,
    /// List prices on both sides from which on that share is asked for.
    scope_jumped_rows_min: usize,
    /// Prices on both sides from which on that share is asked for where those of a market are among them.
    market_jumped_rows_min: usize,
    /// How far the factor of a market's price may lie from another that counts as the same, in percent.
    market_factor_spread_percent_max: f64,
    /// Share of prices that moved by one factor from which on it is a fault, in percent.
    same_factor_percent_min: usize,
    /// Prices on both sides from which on any one factor is a fault.
    same_factor_rows_min: usize,
    /// How far apart factors may lie that count as one, in percent.
    same_factor_spread_percent_max: f64,
    /// Factors between units.
    unit_factors: Vec<f64>,
    /// Share of the machines of several GPUs that moved by their number of GPUs from which on it is a fault, in percent.
    per_gpu_percent_min: usize,
    /// Such machines from which on it is a fault.
    per_gpu_rows_min: usize,
    /// GPUs of a machine from which on one alone is a fault.
    per_gpu_alone_gpus_min: i128,
    /// Share of prices with the same figure under another currency from which on it is a fault, in percent.
    same_currency_amount_percent_min: usize,
    /// Factor from which on a move to another card's price counts.
    anothers_price_factor_min: f64,
    /// Share of list prices that moved to another card's price from which on it is a fault, in percent.
    anothers_price_percent_min: usize,
    /// Families of cards of a scope from which on their distinct prices are counted.
    one_price_families_min: usize,
    /// Distinct prices over families up to which it is a fault, in percent.
    one_price_distinct_percent_max: usize,
    /// How many times the GPUs at one price of the machine are a fault.
    same_machine_price_gpus_factor_min: f64,
    /// Hours that a month must cost at least.
    month_hours_min: f64,
    /// Hours that a month may cost at most.
    month_hours_max: f64,
    /// How much dearer a longer promise may be before it is noted, in percent.
    order_slack_percent: f64,
    /// How many times dearer a longer promise is held back.
    order_breach_factor_min: f64,
    /// Age of a live page at its night, in hours.
    answer_age_hours_max: i64,
    /// Days an answer is the same from which on it is noted.
    unchanged_days_noted_min: i64,
    /// Lowest plausible price of a machine whose GPUs have none, in USD per hour.
    machine_usd_per_hour_min: f64,
    /// Highest plausible price of a machine whose GPUs have none, in USD per hour.
    machine_usd_per_hour_max: f64,
}

impl Thresholds {
    /// The thresholds built into the program.
    #[must_use]
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Thresholds> =
            LazyLock::new(|| Thresholds::parse(include_str!("thresholds.toml")).expect("thresholds.toml is tested here"));
        &BUILT_IN
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let mut all: Self = toml::from_str(text)?;
        let classes = all.classes.iter().enumerate();
        let of_family: HashMap<&str, usize> =
            classes.flat_map(|(at, class)| class.families.iter().map(move |family| (family.as_str(), at))).collect();
        let class_of = |family: &str| of_family.get(family).copied().unwrap_or(WIDEST);
        all.class_of_model = GpuModels::built_in().models().iter().map(|model| class_of(&model.family)).collect();
        Ok(all)
    }

    /// Bounds of the prices of a model, by its place in `gpu_models.toml`; of a card that nobody named, the widest.
    #[must_use]
    pub fn class_of(&self, model: Option<usize>) -> &PriceClass {
        let class = model.and_then(|model| self.class_of_model.get(model)).copied().unwrap_or(WIDEST);
        &self.classes[class]
    }
}

/// The class of every card that no other class names: the first.
const WIDEST: usize = 0;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TEXT: &str = include_str!("thresholds.toml");

    #[test]
    fn every_threshold_has_its_unit_in_its_name_and_a_written_reason() {
        const UNITS: [&str; 13] = [
            "percent",
            "rows",
            "factor",
            "factors",
            "gpus",
            "families",
            "hours",
            "days",
            "usd_per_hour",
            "percent_min",
            "percent_max",
            "usd_per_gpu_hour",
            "_hours_",
        ];
        for (name, why) in Thresholds::built_in().reasons() {
            assert!(UNITS.iter().any(|unit| name.contains(unit)), "{name} has no unit");
            assert!(why.len() > 30 && why.ends_with('.'), "{name}: {why}");
        }
        for class in &Thresholds::built_in().classes {
            assert!(class.why.ends_with('.'), "{}", class.name);
        }
    }

    #[test]
    fn a_key_that_nobody_knows_is_refused() {
        assert!(Thresholds::parse(TEXT).is_ok());
        assert!(Thresholds::parse(&format!("[jump_factr_min]\nvalue = 2.0\nwhy = \"a slip of the pen.\"\n{TEXT}")).is_err());
        assert!(Thresholds::parse(&TEXT.replacen("value = 20\n", "value = 20\nvalu = 21\n", 1)).is_err());
        assert!(Thresholds::parse(&TEXT.replacen("value = 20\n", "", 1)).is_err(), "a threshold has a value");
    }

    #[test]
    fn every_class_names_families_that_exist_and_each_family_once() {
        let known: BTreeSet<&str> = GpuModels::built_in().models().iter().map(|model| model.family.as_str()).collect();
        let mut seen = BTreeSet::new();
        for class in &Thresholds::built_in().classes {
            for family in &class.families {
                assert!(known.contains(family.as_str()), "{}: no family `{family}`", class.name);
                assert!(seen.insert(family), "`{family}` is in two classes");
            }
            assert!(class.list_usd_per_gpu_hour_min < class.list_usd_per_gpu_hour_max, "{}", class.name);
            assert!(class.market_usd_per_gpu_hour_min <= class.list_usd_per_gpu_hour_min, "{}", class.name);
            let widest = &Thresholds::built_in().classes[WIDEST];
            assert!(class.market_usd_per_gpu_hour_min >= widest.market_usd_per_gpu_hour_min, "{}", class.name);
            assert!(class.list_usd_per_gpu_hour_max <= widest.list_usd_per_gpu_hour_max, "{}", class.name);
        }
        assert!(Thresholds::built_in().classes[WIDEST].families.is_empty());
    }
}
