//! The columns of the dataset: name, type, unit and meaning. This is their only home.
//!
//! From here they go into the Parquet files, the Delta log, `output/schema/*.toml` and the documentation. A column never
//! changes its type or meaning; a new one is added at the end of its table and the schema's version goes up.

use std::fmt::Write as _;

/// Version of the tables below.
pub const SCHEMA_VERSION: u32 = 1;

/// Digits after the point that the dataset keeps of every exact amount.
pub const DECIMAL_SCALE: usize = 12;

/// Digits that the dataset keeps of every exact amount in all.
pub const DECIMAL_PRECISION: usize = 38;

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8 text.
    Text,
    /// True or false.
    Boolean,
    /// 32-bit whole number.
    Whole,
    /// 64-bit whole number.
    Long,
    /// Exact, `Decimal(38, 12)`.
    Decimal,
    /// 64-bit binary float: one rounding of an exact number.
    Float,
    /// A day.
    Date,
    /// An instant in UTC, microseconds.
    Instant,
}

impl Kind {
    /// The type's name in the schema files.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Boolean => "boolean",
            Self::Whole => "int32",
            Self::Long => "int64",
            Self::Decimal => "decimal(38,12)",
            Self::Float => "float64",
            Self::Date => "date",
            Self::Instant => "timestamp(us, UTC)",
        }
    }
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name in every file.
    pub name: &'static str,
    /// Type.
    pub kind: Kind,
    /// Unit, or `-` where there is none.
    pub unit: &'static str,
    /// Meaning, in a sentence.
    pub meaning: &'static str,
    /// A value that could stand there.
    pub example: &'static str,
}

/// One table.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// Folder below the output.
    pub name: &'static str,
    /// What a row is.
    pub row: &'static str,
    /// Columns in file order.
    pub columns: &'static [Column],
    /// Columns that decide the order of rows.
    pub order: &'static [&'static str],
    /// Columns whose smallest and largest value stand in the log, so that whole files can be passed over.
    pub bounds: &'static [&'static str],
    /// Whether the table is partitioned by `snapshot_date`.
    pub is_partitioned: bool,
}

const fn column(name: &'static str, kind: Kind, unit: &'static str, meaning: &'static str, example: &'static str) -> Column {
    Column { name, kind, unit, meaning, example }
}

use Kind::{Boolean, Date, Decimal, Float, Instant, Long, Text, Whole};

/// Published prices.
pub const OFFERS: Table = Table {
    name: "offers",
    row: "one published price of one thing that can be rented, in one snapshot",
    columns: &[
        column("snapshot_id", Text, "-", "The snapshot: its time in UTC.", "2026-10-30T18-00-00Z"),
        column("snapshot_date", Date, "-", "Day of the snapshot in UTC; the partition.", "2026-10-30"),
        column(
            "observed_at",
            Instant,
            "UTC",
            "When the page was read from the provider; of an earlier night, when it was published.",
            "2026-10-30T18:00:00Z",
        ),
        column("provider", Text, "-", "Short name of the provider.", "azure"),
        column("site", Text, "-", "Price list of the provider: cn, intl, global or gov.", "global"),
        column("source_kind", Text, "-", "Who says it: vendor_api, vendor_page, aggregator or import.", "vendor_api"),
        column("offer_id", Text, "-", "What the offer is, hashed; outlives prices, order and time.", "4f1d0c2b9a7e86531f20"),
        column("sku", Text, "-", "The provider's id of the price; never our identity.", "DZH318Z0KN53/0046"),
        column("instance_type", Text, "-", "The provider's name of the machine.", "Standard_ND96isr_H100_v5"),
        column("offer_label", Text, "-", "What the page calls the offer where it names no machine type.", "8x NVIDIA H100 SXM"),
        column("region", Text, "-", "Region as published; null where the price holds everywhere.", "eastus"),
        column("zone", Text, "-", "Zone as published.", "ap-guangzhou-6"),
        column("location_code", Text, "-", "ISO country and metro; null where unknown.", "US-IAD"),
        column("country", Text, "-", "ISO 3166 code of the country.", "US"),
        column("continent", Text, "-", "Continent of the country.", "north_america"),
        column("gpu_model", Text, "-", "Canonical name of the GPU; null where the provider does not name it.", "H100 SXM"),
        column("gpu_vendor", Text, "-", "Maker of the GPU.", "NVIDIA"),
        column(
            "gpu_label",
            Text,
            "-",
            "The GPU as printed, or as the provider's hardware documentation names the machine's card.",
            "NVIDIA H100 SXM",
        ),
        column(
            "gpu_count",
            Decimal,
            "GPUs",
            "GPUs of the machine; 0.25 is a quarter of a card; null where nobody has read how many.",
            "8",
        ),
        column(
            "is_fractional",
            Boolean,
            "-",
            "Whether the machine has a part of a card; null where nobody has read how many it has.",
            "false",
        ),
        column("gpu_memory_gb", Decimal, "GB", "Marketed memory of one GPU, or of the slice.", "80"),
        column("form_factor", Text, "-", "Form of the GPU.", "SXM5"),
        column("interconnect", Text, "-", "Links between the GPUs of the machine.", "NVLink 4"),
        column("fabric_gbit_per_s", Whole, "Gbit/s", "Network between machines, whole machine.", "3200"),
        column("vcpus", Decimal, "vCPUs", "Virtual CPUs of the whole machine.", "96"),
        column("system_memory_gib", Decimal, "GiB", "Main memory of the whole machine.", "1900"),
        column("local_disk_gb", Decimal, "GB", "Local disks of the whole machine that are in the price.", "960"),
        column("is_bare_metal", Boolean, "-", "Whether there is no hypervisor; null where not stated.", "false"),
        column("tenancy", Text, "-", "shared or dedicated; null where not stated.", "shared"),
        column("os", Text, "-", "Operating system in the price: linux or windows.", "linux"),
        column("licence", Text, "-", "A licence that changes the price.", "byol"),
        column(
            "pricing_model",
            Text,
            "-",
            "on_demand, spot, low_priority, reserved, savings_plan, subscription or capacity_block.",
            "on_demand",
        ),
        column(
            "plan",
            Text,
            "-",
            "The provider's own plan, where several stand side by side under the same terms.",
            "convertible",
        ),
        column("commitment_months", Whole, "months", "Months promised; null where nothing is.", "12"),
        column("upfront", Text, "-", "Part of the term paid at its start: none, partial or all; null where not stated.", "none"),
        column("min_billing_seconds", Whole, "s", "Shortest billed time; null where not stated.", "60"),
        column("is_promotion", Boolean, "-", "Whether it is a promotion beside the list price.", "false"),
        column("valid_from", Instant, "UTC", "From when the price holds, as published.", "2023-12-01T00:00:00Z"),
        column("availability", Text, "-", "available, low or sold_out; null where not stated.", "available"),
        column("listing_count", Whole, "listings", "Listings behind a marketplace price.", "12"),
        column("published_amount", Decimal, "published currency", "The amount exactly as printed.", "98.32"),
        column(
            "published_upfront_amount",
            Decimal,
            "published currency",
            "Paid once at the start of the term, beside the amount.",
            "10950",
        ),
        column("published_currency_code", Text, "-", "ISO 4217 code of the amount.", "USD"),
        column("published_unit", Text, "-", "Time the amount pays for: second, minute, hour, day, month, year or term.", "hour"),
        column("published_per", Text, "-", "Thing the amount pays for: instance or gpu.", "instance"),
        column("published_text", Text, "-", "The characters on the page.", "98.32"),
        column("tax_included", Boolean, "-", "Whether tax is in the amount; null where not stated.", "false"),
        column("listing_amount_min", Decimal, "published currency", "Lowest listing of a marketplace.", "0.34"),
        column("listing_amount_max", Decimal, "published currency", "Highest listing of a marketplace.", "0.36"),
        column(
            "price_native_per_hour",
            Float,
            "published currency per hour",
            "Whole machine, up-front part spread over the term.",
            "98.32",
        ),
        column(
            "price_native_per_gpu_hour",
            Float,
            "published currency per GPU-hour",
            "One whole GPU; null for a share that is not fixed.",
            "12.29",
        ),
        column(
            "price_usd_per_hour",
            Float,
            "USD per hour",
            "Whole machine in USD at the rate of `rate_date`; null without a rate.",
            "98.32",
        ),
        column("price_usd_per_gpu_hour", Float, "USD per GPU-hour", "One whole GPU in USD: the price to compare.", "12.29"),
        column("price_cny_per_gpu_hour", Float, "CNY per GPU-hour", "One whole GPU in CNY.", "81.7653"),
        column(
            "usd_per_native",
            Decimal,
            "USD per unit of the published currency",
            "Exchange rate, cut to 12 digits; prices use the exact ratio.",
            "1",
        ),
        column("rate_date", Date, "-", "Day of the exchange rates used.", "2026-10-30"),
        column("rate_source", Text, "-", "Who published the rates.", "ecb"),
        column("usd_per_pflop_hour", Float, "USD per PFLOPS-hour", "Price of a GPU over its dense FP16 rate.", "12.4267"),
        column("usd_per_gpu_gb_hour", Float, "USD per GB-hour", "Price of a GPU over its memory.", "0.153625"),
        column("source_url", Text, "-", "Where the page came from.", "https://prices.azure.com/api/retail/prices"),
        column("raw_sha256", Text, "-", "SHA-256 of the archived page.", "9f86d081884c7d65…"),
        column("raw_place", Text, "-", "Place in the page.", "/Items/0"),
        column("scraper_version", Whole, "-", "Version of the parser that read it.", "1"),
        column("scope", Text, "-", "Part of the provider that is complete or absent together.", "eastus"),
        column("flags", Text, "-", "Marks a reader must know, comma-separated; empty where there are none.", "derived_share"),
    ],
    order: &[
        "gpu_model",
        "provider",
        "site",
        "region",
        "zone",
        "instance_type",
        "offer_label",
        "os",
        "pricing_model",
        "plan",
        "commitment_months",
        "upfront",
        "is_promotion",
        "gpu_count",
        "offer_id",
    ],
    bounds: &["snapshot_id", "provider", "gpu_model", "pricing_model", "price_usd_per_gpu_hour"],
    is_partitioned: true,
};

/// Exchange rates as published.
pub const RATES: Table = Table {
    name: "rates",
    row: "one exchange rate of one currency on one day, as published",
    columns: &[
        column("rate_date", Date, "-", "Day the rate is of.", "2026-10-30"),
        column("currency_code", Text, "-", "ISO 4217 code.", "CNY"),
        column("units_per_eur", Decimal, "units per EUR", "Units of the currency for one euro, exactly as published.", "7.4326"),
        column("rate_source", Text, "-", "Who published it.", "ecb"),
        column("observed_at", Instant, "UTC", "When the page was read.", "2026-10-30T16:30:00Z"),
        column(
            "source_url",
            Text,
            "-",
            "Where the page came from.",
            "https://www.ecb.europa.eu/stats/eurofxref/eurofxref-daily.xml",
        ),
        column("raw_sha256", Text, "-", "SHA-256 of the archived page.", "2c26b46b68ffc68f…"),
        column("raw_place", Text, "-", "Place in the page.", "line 2, CNY"),
        column("snapshot_id", Text, "-", "The night that first saw it.", "2026-10-30T18-00-00Z"),
    ],
    order: &["rate_date", "currency_code"],
    bounds: &["rate_date"],
    is_partitioned: false,
};

/// What each night covers.
pub const COVERAGE: Table = Table {
    name: "coverage",
    row: "one scope of one provider in one snapshot",
    columns: &[
        column("snapshot_id", Text, "-", "The snapshot.", "2026-10-30T18-00-00Z"),
        column("snapshot_date", Date, "-", "Day of the snapshot in UTC; the partition.", "2026-10-30"),
        column("provider", Text, "-", "Short name of the provider.", "azure"),
        column("scope", Text, "-", "Part of the provider that is complete or absent together.", "eastus"),
        column("status", Text, "-", "complete, failed or skipped.", "complete"),
        column("rows", Long, "rows", "Offers or rates published.", "412"),
        column("skipped", Long, "rows", "Rows not understood.", "0"),
        column("quarantined", Long, "rows", "Rows understood and held back.", "2"),
        column("left_out", Long, "rows", "Rows that are deliberately not offers.", "96"),
        column("bytes", Long, "bytes", "Size of the scope's pages.", "781544"),
        column("seconds", Float, "s", "Time spent on fetching and reading.", "3.2"),
        column("reason", Text, "-", "Why it is not complete; null when it is.", "503 after 4 tries"),
        column("input", Text, "-", "live, recorded, typed, files, history or import.", "live"),
        column("scraper_version", Whole, "-", "Version of the parser.", "1"),
    ],
    order: &["provider", "scope"],
    bounds: &["snapshot_id"],
    is_partitioned: true,
};

/// What the rules found in a night; a file beside the tables, for refused nights too.
pub const FINDINGS: Table = Table {
    name: "findings",
    row: "one thing a rule found in one night: a note, a row held back, or a refusal",
    columns: &[
        column("snapshot_id", Text, "-", "The night.", "2026-10-30T18-00-00Z"),
        column("severity", Text, "-", "note, quarantine_row, refuse_scope, refuse_provider or refuse_night.", "quarantine_row"),
        column("rule", Text, "-", "The rule, or the code of the reason.", "key_conflict"),
        column("provider", Text, "-", "Short name of the provider; empty for the whole night.", "azure"),
        column("scope", Text, "-", "The scope; empty for a whole provider.", "eastus"),
        column("label", Text, "-", "What the row calls itself.", "Standard_NC24ads_A100_v4 eastus"),
        column("raw_sha256", Text, "-", "SHA-256 of the archived page.", "9f86d081884c7d65…"),
        column("raw_place", Text, "-", "Place in the page.", "/Items/12"),
        column("reason", Text, "-", "For people.", "price is zero, a placeholder"),
    ],
    order: &[],
    bounds: &[],
    is_partitioned: false,
};

/// Every table.
pub const TABLES: &[&Table] = &[&OFFERS, &RATES, &COVERAGE, &FINDINGS];

impl Table {
    /// The schema file of the table, as kept in `output/schema/`.
    #[must_use]
    pub fn schema_toml(&self) -> String {
        let mut text = format!(
            "# Generated from the program; a test compares. Do not edit.\ntable = \"{}\"\nversion = {SCHEMA_VERSION}\nrow = \"{}\"\n",
            self.name, self.row
        );
        for column in self.columns {
            let _ = write!(
                text,
                "\n[[column]]\nname = \"{}\"\ntype = \"{}\"\nunit = \"{}\"\nmeaning = \"{}\"\nexample = \"{}\"\n",
                column.name,
                column.kind.word(),
                column.unit,
                column.meaning,
                column.example
            );
        }
        text
    }
}
