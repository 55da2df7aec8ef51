//! The closed sets of words that stand in the dataset. A word that is not in its set is not understood; none is a default.

use serde::{Deserialize, Serialize};

/// Declares a closed set of words with their published spelling.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// Every word of the set, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word as it stands in the dataset.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }
    };
}

words! {
    /// Which of a provider's separate price lists a row is from.
    Site {
        /// Mainland China.
        Cn = "cn",
        /// The international list of a provider that also has a Chinese one.
        Intl = "intl",
        /// One list for all.
        Global = "global",
        /// A government list.
        Gov = "gov",
    }
}

words! {
    /// Who says it.
    SourceKind {
        /// The vendor's own machine-readable answer.
        VendorApi = "vendor_api",
        /// The vendor's own page for people.
        VendorPage = "vendor_page",
        /// Somebody who copies vendors' prices.
        Aggregator = "aggregator",
        /// An earlier public history.
        Import = "import",
    }
}

words! {
    /// How the price is bought.
    PricingModel {
        /// Start and stop at will.
        OnDemand = "on_demand",
        /// Can be taken away; the price moves.
        Spot = "spot",
        /// Azure Batch's older pre-emptible class.
        LowPriority = "low_priority",
        /// A named machine for a term.
        Reserved = "reserved",
        /// An hourly spend promised for a term.
        SavingsPlan = "savings_plan",
        /// Paid by the month or year in advance.
        Subscription = "subscription",
        /// A block of time bought in advance.
        CapacityBlock = "capacity_block",
    }
}

words! {
    /// What part of a term is paid at its start.
    Upfront {
        /// Nothing.
        None = "none",
        /// A part.
        Partial = "partial",
        /// Everything.
        All = "all",
    }
}

words! {
    /// The time an amount pays for.
    PriceUnit {
        /// One second.
        Second = "second",
        /// One minute.
        Minute = "minute",
        /// One hour.
        Hour = "hour",
        /// One day.
        Day = "day",
        /// One month, of the hours the manifest states.
        Month = "month",
        /// One year.
        Year = "year",
        /// The whole commitment.
        Term = "term",
    }
}

words! {
    /// The thing an amount pays for.
    PricePer {
        /// The whole machine.
        Instance = "instance",
        /// One whole GPU of it.
        Gpu = "gpu",
    }
}

words! {
    /// The operating system the price includes.
    Os {
        /// Linux, or no licence at all.
        Linux = "linux",
        /// Windows with its licence.
        Windows = "windows",
    }
}

words! {
    /// Whose hardware it is.
    Tenancy {
        /// Shared with strangers.
        Shared = "shared",
        /// The renter's alone.
        Dedicated = "dedicated",
    }
}

words! {
    /// Whether it can be had.
    Availability {
        /// Yes.
        Available = "available",
        /// Little is left.
        Low = "low",
        /// No.
        SoldOut = "sold_out",
    }
}
