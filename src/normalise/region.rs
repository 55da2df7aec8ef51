//! Place codes in, countries and continents of `regions.toml` out.
//!
//! A place code is an ISO 3166-1 country and a metro: `US-IAD`. Which published region is which place stands in the
//! provider's manifest; here nothing is ever read out of a region's name, and a code that is none has no country.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Where something stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The code itself. `US-IAD`
    pub location_code: String,
    /// ISO 3166-1 alpha-2. `US`
    pub country: String,
    /// One of [`Regions::continents`]. `north_america`
    pub continent: &'static str,
}

/// All countries, each with its name and continent.
#[derive(Debug)]
pub struct Regions {
    countries: BTreeMap<String, Country>,
    continents: Vec<String>,
}

#[derive(Debug)]
struct Country {
    name: String,
    continent: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RegionsFile {
    continent: BTreeMap<String, Continent>,
    name: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Continent {
    countries: Vec<String>,
}

impl Regions {
    /// The countries built into the program.
    #[must_use]
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Regions> =
            LazyLock::new(|| Regions::parse(include_str!("regions.toml")).expect("regions.toml is tested with this code"));
        &BUILT_IN
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut file: RegionsFile = toml::from_str(text).map_err(|error| error.to_string())?;
        let continents = file.continent.keys().cloned().collect();
        let mut countries = BTreeMap::new();
        for (continent, list) in file.continent {
            for code in list.countries {
                let name = file.name.remove(&code).ok_or_else(|| format!("country `{code}` has no name, or stands twice"))?;
                countries.insert(code, Country { name, continent: continent.clone() });
            }
        }
        match file.name.keys().next() {
            Some(code) => Err(format!("country `{code}` has no continent")),
            None => Ok(Self { countries, continents }),
        }
    }

    /// The place of a code such as `US-IAD`: country, hyphen, three capital letters or digits. `None` for anything else.
    #[must_use]
    pub fn place(&'static self, code: &str) -> Option<Place> {
        let (country, metro) = code.split_once('-')?;
        let is_metro = metro.len() == 3 && metro.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        let (country, known) = self.countries.get_key_value(country).filter(|_| is_metro)?;
        Some(Place { location_code: code.to_owned(), country: country.clone(), continent: &known.continent })
    }

    /// English name of a country. `DE` is Germany
    #[must_use]
    pub fn country_name(&self, country_code: &str) -> Option<&str> {
        self.countries.get(country_code).map(|country| country.name.as_str())
    }

    /// Code of a country by its code or English name, however written large or small. `germany` is DE
    #[must_use]
    pub fn code_of(&self, typed: &str) -> Option<&str> {
        let typed = typed.trim().to_lowercase();
        let is_meant =
            |(code, country): &(&String, &Country)| code.to_lowercase() == typed || country.name.to_lowercase() == typed;
        self.countries.iter().find(is_meant).map(|(code, _)| code.as_str())
    }

    /// Continent of a country. `DE` is in `europe`
    #[must_use]
    pub fn continent_of(&self, country_code: &str) -> Option<&str> {
        self.countries.get(country_code).map(|country| country.continent.as_str())
    }

    /// Whether it is an ISO 3166-1 alpha-2 code, in capitals.
    #[must_use]
    pub fn is_country(&self, code: &str) -> bool {
        self.countries.contains_key(code)
    }

    /// The seven continents, in alphabetical order.
    pub fn continents(&self) -> impl Iterator<Item = &str> {
        self.continents.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_country_stands_once_and_on_one_of_seven_continents() {
        let regions = Regions::built_in();
        assert_eq!(regions.countries.len(), 249);
        let continents = ["africa", "antarctica", "asia", "europe", "north_america", "oceania", "south_america"];
        assert!(regions.continents().eq(continents));
        for code in regions.countries.keys() {
            assert!(code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase()), "{code}");
        }
    }

    #[test]
    fn a_table_with_a_country_twice_or_nameless_or_homeless_is_refused() {
        let table = |first: &str, second: &str, names: &str| {
            Regions::parse(&format!("[continent.a]\ncountries=[{first}]\n[continent.b]\ncountries=[{second}]\n[name]\n{names}"))
        };
        assert!(table("'DE'", "'FR'", "DE='Germany'\nFR='France'").is_ok());
        assert!(table("'DE'", "'DE'", "DE='Germany'").is_err());
        assert!(table("'DE'", "'FR'", "DE='Germany'").is_err());
        assert!(table("'DE'", "", "DE='Germany'\nFR='France'").is_err());
    }

    #[test]
    fn a_place_code_has_a_country_and_a_continent() {
        let regions = Regions::built_in();
        for (code, country, continent) in [
            ("US-IAD", "US", "north_america"),
            ("DE-FRA", "DE", "europe"),
            ("CN-BJS", "CN", "asia"),
            ("BR-GRU", "BR", "south_america"),
            ("ZA-JNB", "ZA", "africa"),
            ("AU-SYD", "AU", "oceania"),
            ("FI-001", "FI", "europe"),
        ] {
            let (location_code, country) = (code.to_owned(), country.to_owned());
            assert_eq!(regions.place(code), Some(Place { location_code, country, continent }));
        }
        assert_eq!(regions.country_name("KR"), Some("South Korea"));
        assert_eq!(regions.continent_of("IS"), Some("europe"));
        assert!(regions.is_country("TW"));
        for (typed, code) in [("germany", Some("DE")), ("de", Some("DE")), (" South korea", Some("KR")), ("UK", None), ("", None)]
        {
            assert_eq!(regions.code_of(typed), code, "{typed}");
        }
    }

    #[test]
    fn what_is_no_place_code_has_no_place() {
        let regions = Regions::built_in();
        for code in
            ["", "US", "US-", "us-iad", "US-iad", "US-IADX", "US-I-D", "UK-LHR", "XX-ABC", "EU-FRA", "USA-IAD", "US_IAD", "US-ÄÖ"]
        {
            assert_eq!(regions.place(code), None, "{code}");
        }
        assert_eq!((regions.country_name("UK"), regions.continent_of("us"), regions.is_country("")), (None, None, false));
    }
}
