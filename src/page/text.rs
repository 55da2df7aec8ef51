//! Every text of the page, in each language: the only place with words that a reader sees.
//!
//! A text that one language lacks does not compile. Sentences with numbers in them are functions, since languages order them
//! differently. What a provider or a record says stays as it was said.

use chrono::{DateTime, TimeDelta, Utc};
use gpuledger_scrapers::contract::PricingModel;
use serde::Serialize;

use super::night::Status;
use super::values::{count, shown};
use crate::night::second;

/// Language of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Lang {
    /// English.
    #[default]
    En,
    /// Chinese.
    Zh,
}

impl Lang {
    /// The texts.
    pub(super) const fn text(self) -> &'static Text {
        match self {
            Self::En => &super::english::TEXT,
            Self::Zh => &super::chinese::TEXT,
        }
    }
}

/// The texts of a language.
#[derive(Debug, Serialize)]
pub(super) struct Text {
    #[serde(skip)]
    pub lang: Lang,
    /// For the page's `lang`.
    pub code: &'static str,
    pub title: &'static str,
    pub skip: &'static str,
    pub sections: &'static str,
    pub theme: &'static str,
    pub theme_auto: &'static str,
    pub theme_light: &'static str,
    pub theme_dark: &'static str,
    pub changes: &'static str,
    pub trend: &'static str,
    pub cheapest: &'static str,
    pub coverage: &'static str,
    pub offers: &'static str,
    pub of_recordings: &'static str,
    pub recorded: &'static str,
    pub typed: &'static str,
    pub made_up: &'static str,
    pub from_files: &'static str,
    pub from_history: &'static str,
    pub not_of_today: &'static str,
    pub provider: &'static str,
    pub status: &'static str,
    pub scopes: &'static str,
    pub offers_or_rates: &'static str,
    pub held_back: &'static str,
    pub not_understood: &'static str,
    pub input: &'static str,
    pub age: &'static str,
    pub reason: &'static str,
    pub rates: &'static str,
    pub coverage_note: &'static str,
    pub changes_note: &'static str,
    pub no_night_before: &'static str,
    pub no_changes: &'static str,
    pub list_prices: &'static str,
    pub market_prices: &'static str,
    pub change: &'static str,
    pub offer: &'static str,
    pub region: &'static str,
    pub gpus: &'static str,
    pub way: &'static str,
    pub before: &'static str,
    pub now: &'static str,
    pub unit: &'static str,
    pub since: &'static str,
    pub not_comparable: &'static str,
    pub other_terms: &'static str,
    pub trend_note: &'static str,
    pub no_trend: &'static str,
    pub one_day: &'static str,
    pub collected: &'static str,
    pub trend_figures: &'static str,
    pub gpu: &'static str,
    pub source: &'static str,
    pub newest: &'static str,
    pub newest_day: &'static str,
    pub lowest: &'static str,
    pub highest: &'static str,
    pub first_day: &'static str,
    pub days: &'static str,
    pub providers_that_day: &'static str,
    pub cheapest_note: &'static str,
    pub cheapest_of: &'static str,
    pub left_out: &'static str,
    pub no_cheapest: &'static str,
    pub memory: &'static str,
    pub providers: &'static str,
    pub on_demand: &'static str,
    pub spot: &'static str,
    pub promised: &'static str,
    pub usd_per_gpu_hour: &'static str,
    pub gpu_count: &'static str,
    pub machine: &'static str,
    pub os: &'static str,
    pub published: &'static str,
    pub published_unit: &'static str,
    pub seen: &'static str,
    pub remarks: &'static str,
    pub page: &'static str,
    pub offers_caption: &'static str,
    pub search: &'static str,
    pub search_hint: &'static str,
    pub any: &'static str,
    pub at_most: &'static str,
    pub order: &'static str,
    pub ascending: &'static str,
    pub descending: &'static str,
    pub reset: &'static str,
    pub earlier_rows: &'static str,
    pub later_rows: &'static str,
    pub match_none: &'static str,
    /// `{n}` of `{all}`.
    pub match_some: &'static str,
    /// `{from}`, `{to}`.
    pub rows_shown: &'static str,
    /// `{days}`.
    pub days_ago: &'static str,
    pub made_by: &'static str,
}

/// What the sentence of the night tells.
pub(super) struct Tonight {
    pub night: DateTime<Utc>,
    pub offers: usize,
    pub gpus: usize,
    pub sellers: usize,
    pub statuses: Vec<(Status, usize)>,
    /// `None` where there is no earlier night.
    pub changes: Option<usize>,
}

impl Text {
    fn pick<T>(&self, en: T, zh: T) -> T {
        match self.lang {
            Lang::En => en,
            Lang::Zh => zh,
        }
    }

    pub(super) fn status_word(&self, status: Status) -> &'static str {
        match status {
            Status::Complete => self.pick("complete", "完整"),
            Status::Partial => self.pick("partial", "部分"),
            Status::Failed => self.pick("failed", "失败"),
            Status::Skipped => self.pick("skipped", "未查询"),
        }
    }

    /// Where pages came from, by the word of the `coverage` table.
    pub(super) fn input_word(&self, word: &str) -> String {
        use crate::gather::Input;
        let words = |input| match input {
            Input::Live => self.pick("read that night", "当晚读取"),
            Input::Recorded => self.pick("recorded", "录制"),
            Input::Typed => self.pick("typed by hand", "手工录入"),
            Input::Files => self.pick("files", "文件"),
            Input::History => self.pick("provider’s history", "厂商历史"),
            Input::Import => self.pick("imported", "导入"),
        };
        Input::ALL.into_iter().find(|input| input.word() == word).map_or_else(|| shown(word), |input| words(input).to_owned())
    }

    pub(super) fn model_word(&self, word: &str) -> String {
        let words = |model: &PricingModel| match model {
            PricingModel::OnDemand => self.pick("on demand", "按需"),
            PricingModel::Spot => self.pick("spot", "竞价"),
            PricingModel::LowPriority => self.pick("low priority", "低优先级"),
            PricingModel::Reserved => self.pick("reserved", "预留"),
            PricingModel::SavingsPlan => self.pick("savings plan", "节省计划"),
            PricingModel::Subscription => self.pick("subscription", "包年包月"),
            PricingModel::CapacityBlock => self.pick("capacity block", "容量块"),
        };
        let known = PricingModel::ALL.iter().find(|model| model.word() == word);
        // A word that only a newer program knows is said as it is written.
        known.map_or_else(|| shown(&word.replace('_', " ")), |model| words(model).to_owned())
    }

    /// The way to buy. `reserved, 12 months, convertible, up front: all`
    pub(super) fn way(&self, model: &str, plan: &str, months: &str, upfront: &str) -> String {
        let mut parts = vec![self.model_word(model)];
        match months {
            "" => {}
            "1" => parts.push(self.pick("1 month", "1 个月").to_owned()),
            months => parts.push(self.pick(format!("{months} months"), format!("{months} 个月"))),
        }
        if !plan.is_empty() {
            parts.push(shown(plan));
        }
        match upfront {
            "" | "none" => {}
            "all" => parts.push(self.pick("all up front", "全部预付").to_owned()),
            "partial" => parts.push(self.pick("partly up front", "部分预付").to_owned()),
            other => parts.push(shown(other)),
        }
        parts.join(self.pick(", ", "，"))
    }

    /// What an amount is for. `USD per GPU-hour`
    pub(super) fn unit(&self, currency: &str, unit: &str, per: &str) -> String {
        let (currency, unit, is_gpu) = (shown(currency), self.time(unit), per == "gpu");
        match self.lang {
            Lang::En => format!("{currency} per {}-{unit}", if is_gpu { "GPU" } else { "machine" }),
            Lang::Zh => format!("{currency}/{}·{unit}", if is_gpu { "GPU" } else { "台" }),
        }
    }

    /// The currency of an amount and the time that it pays for. `USD per hour`
    pub(super) fn amount_unit(&self, currency: &str, unit: &str) -> String {
        let (currency, english) = (shown(currency), shown(unit));
        self.pick(format!("{currency} per {english}"), format!("{currency}/{}", self.time(unit)))
    }

    /// A unit of time, in the words of the dataset.
    fn time(&self, unit: &str) -> String {
        let units = [
            ("second", "秒"),
            ("minute", "分钟"),
            ("hour", "小时"),
            ("day", "天"),
            ("month", "月"),
            ("year", "年"),
            ("term", "期"),
        ];
        let known = units.iter().find(|(english, _)| *english == unit);
        known.map_or_else(|| shown(unit), |(english, chinese)| self.pick(*english, *chinese).to_owned())
    }

    /// What is paid once beside an amount, behind its unit; nothing where nothing is.
    pub(super) fn up_front(&self, amount: &str) -> String {
        if amount.is_empty() {
            return String::new();
        }
        let amount = shown(amount);
        self.pick(format!(", and {amount} up front"), format!("，另预付 {amount}"))
    }

    pub(super) fn listings(&self, listings: i64) -> String {
        let listings = count(listings);
        self.pick(format!("middle of {listings} listings"), format!("{listings} 个挂单的中位"))
    }

    /// A length of time, in its largest fitting unit; number and unit stay on one line.
    pub(super) fn span(&self, span: TimeDelta) -> String {
        let span = span.abs();
        match (span.num_minutes(), span.num_hours(), span.num_days()) {
            (minutes, ..120, _) if minutes < 120 => self.pick(format!("{minutes}\u{a0}min"), format!("{minutes}\u{a0}分钟")),
            (_, hours, _) if hours < 48 => self.pick(format!("{hours}\u{a0}h"), format!("{hours}\u{a0}小时")),
            (_, _, days) => self.pick(format!("{days}\u{a0}d"), format!("{days}\u{a0}天")),
        }
    }

    /// How long before a night something was seen.
    pub(super) fn seen(&self, seen: DateTime<Utc>, night: DateTime<Utc>) -> String {
        if (night - seen).abs() < TimeDelta::minutes(1) {
            return self.pick("that night", "当晚").to_owned();
        }
        let span = self.span(night - seen);
        if seen > night { self.pick(format!("{span} later"), format!("{span}后")) } else { span }
    }

    pub(super) fn last_had(&self, last: DateTime<Utc>, night: DateTime<Utc>) -> String {
        let (day, span) = (last.date_naive(), self.span(night - last));
        self.pick(format!("nothing that night; last had {day}, {span} before"), format!("当晚没有；上次为 {day}，{span}前"))
    }

    /// The night in a sentence.
    pub(super) fn tonight(&self, facts: &Tonight) -> String {
        let at = facts.night.format("%Y-%m-%d %H:%M UTC");
        let [offers, gpus, sellers] = [facts.offers, facts.gpus, facts.sellers].map(count);
        let statuses: Vec<String> = facts
            .statuses
            .iter()
            .filter(|(_, providers)| *providers > 0)
            .map(|(status, providers)| match self.lang {
                Lang::En => format!("{} {}", count(*providers), self.status_word(*status)),
                Lang::Zh => format!("{}{} 家", self.status_word(*status), count(*providers)),
            })
            .collect();
        let statuses = statuses.join(self.pick(", ", "，"));
        let changes = match (facts.changes, self.lang) {
            (None, Lang::En) => "there is no night before to compare with".to_owned(),
            (None, Lang::Zh) => "之前没有可比较的夜晚".to_owned(),
            (Some(0), Lang::En) => "no price was changed since the night before".to_owned(),
            (Some(0), Lang::Zh) => "与前一晚相比没有价格变动".to_owned(),
            (Some(1), Lang::En) => "1 price was changed since the night before".to_owned(),
            (Some(changes), Lang::En) => format!("{} prices were changed since the night before", count(changes)),
            (Some(changes), Lang::Zh) => format!("与前一晚相比有 {} 项价格变动", count(changes)),
        };
        match self.lang {
            Lang::En => {
                format!(
                    "On the night of {at}, {sellers} providers had {offers} offers of {gpus} kinds of GPU; sources: {statuses}; {changes}."
                )
            }
            Lang::Zh => {
                format!("{at} 当晚：{sellers} 家厂商提供 {gpus} 种 GPU 的 {offers} 个报价；来源：{statuses}；{changes}。")
            }
        }
    }

    /// What is not there.
    pub(super) fn missing(&self, names: &[&str]) -> String {
        let names = self.list(names);
        self.pick(format!("Not there, or not wholly: {names}."), format!("缺失或不完整：{names}。"))
    }

    pub(super) fn list(&self, names: &[&str]) -> String {
        names.join(self.pick(", ", "、"))
    }

    pub(super) fn scopes_more(&self, more: usize) -> String {
        self.pick(format!("({more} more scopes missing)"), format!("（另有 {more} 个范围缺失）"))
    }

    pub(super) fn shown_of(&self, shown: usize, all: usize) -> String {
        let (shown, all) = (count(shown), count(all));
        self.pick(format!("The {shown} biggest of {all}."), format!("{all} 项中变动最大的 {shown} 项。"))
    }

    /// What the table says where no script runs.
    pub(super) fn without_script(&self, shown: usize, all: usize) -> String {
        let (shown, all) = (count(shown), count(all));
        self.pick(
            format!(
                "Without a script this page shows the {shown} cheapest of {all} offers; `gpuledger offers` lists all of them."
            ),
            format!("未启用脚本时，本页只显示 {all} 个报价中最便宜的 {shown} 个；`gpuledger offers` 可列出全部。"),
        )
    }

    pub(super) fn figure(&self, newest: &str, day: &str) -> String {
        self.pick(format!("{newest} USD per GPU-hour on {day}"), format!("{day} 为 {newest} 美元/GPU·小时"))
    }

    /// A source of a line: the program's own nights, or a history by the name of its scope.
    pub(super) fn history(&self, name: &str) -> String {
        let name = shown(name);
        self.pick(format!("history kept by others: {name}"), format!("他人保存的历史：{name}"))
    }

    pub(super) fn source_of(&self, provider: &str, machine: &str) -> String {
        self.pick(format!("source of {provider} {machine}"), format!("{provider} {machine} 的来源"))
    }

    pub(super) fn made_of(&self, snapshot: &str, night: DateTime<Utc>) -> String {
        let at = second(night);
        self.pick(
            format!("Snapshot {snapshot}. Ages are counted to its time, {at}."),
            format!("快照 {snapshot}。各项时效均以其时间 {at} 为准。"),
        )
    }

    /// Why offers stand in no list of the cheapest.
    pub(super) fn why(&self, why: super::best::Why) -> &'static str {
        use super::best::Why;
        match why {
            Why::OtherSystem => {
                self.pick("with another operating system than Linux in the price", "价格中含 Linux 以外的操作系统")
            }
            Why::PartOfACard => self.pick("of a part of a card", "只出租部分显卡"),
            Why::Copy => self.pick("that are somebody’s copy of a vendor’s price", "为他人转载的厂商价格"),
            Why::Stale => self.pick("seen more than 7 days before that night", "读取时间早于当晚 7 天以上"),
            Why::NoDollars => self.pick("without a price in dollars for one whole GPU", "没有整卡的美元价格"),
            Why::ByPlan => self.pick("by a plan of the provider’s own, or at low priority", "属于厂商自有方案或低优先级"),
            Why::NoName => self.pick("whose GPU is not named", "未注明 GPU 型号"),
        }
    }

    /// What a reader must know before holding an offer's price against the others.
    pub(super) fn note(&self, note: super::offers::Note) -> &'static str {
        use super::offers::Note;
        match note {
            Note::PartOfACard => self.pick("part of a card", "部分显卡"),
            Note::Promotion => self.pick("promotion", "促销"),
            Note::TaxIncluded => self.pick("tax included", "含税"),
            Note::SoldOut => self.pick("sold out", "售罄"),
            Note::FewLeft => self.pick("few left", "余量少"),
            Note::Copy => self.pick("somebody’s copy", "他人转载"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn texts(lang: Lang) -> Vec<(String, String)> {
        let serde_json::Value::Object(texts) = serde_json::to_value(lang.text()).expect("texts are JSON") else {
            unreachable!("the texts are an object")
        };
        texts.into_iter().map(|(name, text)| (name, text.as_str().expect("a text").to_owned())).collect()
    }

    fn is_chinese(text: &str) -> bool {
        text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c))
    }

    /// What is filled in by the script. `{n}`
    fn blanks(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect()
    }

    #[test]
    fn both_languages_have_every_text_with_the_same_blanks() {
        let (english, chinese) = (texts(Lang::En), texts(Lang::Zh));
        assert!(english.len() > 80, "{}", english.len());
        for ((name, english), (other, chinese)) in english.iter().zip(&chinese) {
            assert_eq!(name, other);
            assert!(!english.trim().is_empty() && !chinese.trim().is_empty(), "{name}");
            assert!(!is_chinese(english), "{name}: {english}");
            let is_name = name == "code" || chinese == "GPU";
            assert!(is_chinese(chinese) || is_name, "{name}: {chinese}");
            assert_eq!(blanks(english), blanks(chinese), "{name}");
        }
    }

    #[test]
    fn a_length_of_time_is_told_in_its_largest_fitting_unit() {
        let (english, chinese) = (Lang::En.text(), Lang::Zh.text());
        let spans = [TimeDelta::minutes(5), TimeDelta::hours(3), TimeDelta::hours(47), TimeDelta::days(2), TimeDelta::days(400)];
        assert_eq!(
            spans.map(|span| english.span(span)),
            ["5 min", "3 h", "47 h", "2 d", "400 d"].map(|text| text.replace(' ', "\u{a0}"))
        );
        assert_eq!(
            spans.map(|span| chinese.span(span)),
            ["5 分钟", "3 小时", "47 小时", "2 天", "400 天"].map(|text| text.replace(' ', "\u{a0}"))
        );
    }

    #[test]
    fn a_way_to_buy_is_said_whole() {
        let (english, chinese) = (Lang::En.text(), Lang::Zh.text());
        assert_eq!(english.way("on_demand", "", "", ""), "on demand");
        assert_eq!(english.way("reserved", "convertible", "12", "all"), "reserved, 12 months, convertible, all up front");
        assert_eq!(chinese.way("reserved", "", "1", "partial"), "预留，1 个月，部分预付");
        assert_eq!(english.way("leased_to_own", "", "", ""), "leased to own", "a word of a newer program");
        assert_eq!(english.unit("USD", "hour", "gpu"), "USD per GPU-hour");
        assert_eq!(chinese.unit("CNY", "month", "instance"), "CNY/台·月");
    }
}
