//! Faults that readers of price pages have had, planted into the prices of one night.

use rust_decimal::Decimal;

use super::Price;

/// A fault, and what it does to the prices. `None` where the prices are such that it cannot happen.
pub struct Fault {
    pub name: &'static str,
    pub plant: fn(&[Price]) -> Option<Vec<Price>>,
}

/// Every fault that is planted.
pub const FAULTS: [Fault; 14] = [
    Fault { name: "a month's price as an hour's", plant: |prices| times(prices, Decimal::from(730)) },
    Fault { name: "an hour's price as a month's", plant: |prices| times(prices, Decimal::ONE / Decimal::from(730)) },
    Fault { name: "cents as dollars", plant: |prices| times(prices, Decimal::ONE_HUNDRED) },
    Fault { name: "dollars as cents", plant: |prices| times(prices, Decimal::new(1, 2)) },
    Fault { name: "a day's price as an hour's", plant: |prices| times(prices, Decimal::from(24)) },
    Fault { name: "thousandths as dollars", plant: |prices| times(prices, Decimal::from(1_000)) },
    Fault { name: "yuan as dollars", plant: |prices| times(prices, Decimal::new(7_1234, 4)) },
    Fault { name: "another currency's label", plant: other_label },
    Fault { name: "one GPU's price for the machine", plant: |prices| by_gpus(prices, |amount, gpus| amount / gpus) },
    Fault { name: "the machine's price for one GPU", plant: |prices| by_gpus(prices, |amount, gpus| amount * gpus) },
    Fault { name: "one value in the whole column", plant: one_value },
    Fault { name: "each price in the next row", plant: next_row },
    Fault { name: "zero as a price", plant: |prices| times(prices, Decimal::ZERO) },
    Fault { name: "half of the rows", plant: half },
];

fn times(prices: &[Price], factor: Decimal) -> Option<Vec<Price>> {
    // What a reader would print: as many digits as prices have.
    Some(prices.iter().map(|price| Price { amount: (price.amount * factor).round_dp(6), ..price.clone() }).collect())
}

fn other_label(prices: &[Price]) -> Option<Vec<Price>> {
    let label = |code: &str| if code == "USD" { "CNY" } else { "USD" }.to_owned();
    Some(prices.iter().map(|price| Price { currency: label(&price.currency), ..price.clone() }).collect())
}

fn by_gpus(prices: &[Price], change: fn(Decimal, Decimal) -> Decimal) -> Option<Vec<Price>> {
    let planted = |price: &Price| {
        let gpus = Decimal::from(*price.gpus.numer()) / Decimal::from(*price.gpus.denom());
        let is_several = gpus > Decimal::ONE;
        let amount = if is_several { change(price.amount, gpus).round_dp(6) } else { price.amount };
        Price { amount, ..price.clone() }
    };
    let of_several = prices.iter().filter(|price| *price.gpus.numer() > 1).count();
    (of_several > 1).then(|| prices.iter().map(planted).collect())
}

fn one_value(prices: &[Price]) -> Option<Vec<Price>> {
    let amount = prices[prices.len() / 2].amount;
    Some(prices.iter().map(|price| Price { amount, ..price.clone() }).collect())
}

fn next_row(prices: &[Price]) -> Option<Vec<Price>> {
    let amounts = prices.iter().cycle().skip(1).map(|price| price.amount);
    Some(prices.iter().zip(amounts).map(|(price, amount)| Price { amount, ..price.clone() }).collect())
}

fn half(prices: &[Price]) -> Option<Vec<Price>> {
    // Of five rows, three may go for good.
    (prices.len() > 5).then(|| prices.iter().step_by(2).cloned().collect())
}
