//! Printed GPU labels in, canonical models of `gpu_models.toml` out.
//!
//! A label is cut into whole words and the words must account for all of it: model, form, memory, and words that say
//! nothing. A name is never sought inside a longer one (A10 in A100, L4 in L40S). Never is a form or a memory size made up,
//! never is a slice taken for a card, and never has an unknown label a default: it is an error, and the row is quarantined.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::LazyLock;

use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer, de::Error as _};

use label::{Known, Parts, form_word, is_same_form};

mod label;

/// Why a label has no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GpuLabelError {
    /// No entry of `gpu_models.toml` accounts for the label: add the model, a spelling, or a label to the provider's manifest.
    #[error("find the GPU label `{label}` in gpu_models.toml")]
    Unknown {
        /// As printed.
        label: String,
    },
    /// Several models share the label, and neither memory nor form decides: the scraper must read one of them.
    #[error("decide which GPU `{label}` is: {}", candidates.join(", "))]
    Ambiguous {
        /// As printed.
        label: String,
        /// Canonical names.
        candidates: Vec<String>,
    },
}

/// One entry of `gpu_models.toml`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuModel {
    /// Canonical name, as in column `gpu_model`. `H100 SXM`
    pub name: String,
    /// What a person types to mean all forms. `H100`
    pub family: String,
    /// Maker of the chip. `NVIDIA`
    pub vendor: String,
    /// Board form; `None` where the name leaves it open. `SXM5`
    pub form_factor: Option<String>,
    /// Marketed memory of one card in GB; several where the name leaves it open, none where it is not published. 80
    #[serde(deserialize_with = "whole_numbers")]
    pub memory_gb: Vec<Decimal>,
    /// Other figures in GB that providers print for the same memory, further than 7 % away. 262 for a B300 of 288
    #[serde(default, deserialize_with = "whole_numbers")]
    pub also_counted_gb: Vec<Decimal>,
    /// Bandwidth of one card's memory in decimal GB/s; `None` where not published or left open by the name. 3350
    #[serde(default, deserialize_with = "decimal_text")]
    pub memory_bandwidth_gb_per_s: Option<Decimal>,
    /// Dense FP16 TFLOPS of one card, without sparsity; `None` where not published. 989
    #[serde(default, deserialize_with = "decimal_text")]
    pub dense_fp16_tflops: Option<Decimal>,
    /// Dense FP8 TFLOPS of one card, without sparsity; `None` where not published, and where the chip has no FP8. 1979
    #[serde(default, deserialize_with = "decimal_text")]
    pub dense_fp8_tflops: Option<Decimal>,
    /// What joins the card to its like, or else its slot; `optional bridge` only where cards are bridged. `NVLink 4`
    #[serde(default)]
    pub interconnect: Option<String>,
    /// Total of one card over `interconnect` in GB/s, both directions; `None` where the vendor does not state it. 900
    #[serde(default, deserialize_with = "decimal_text")]
    pub interconnect_gb_per_s: Option<Decimal>,
    /// Calendar year of release, of the earliest card where the name leaves several open; `None` where not known. 2022
    #[serde(default)]
    pub released_year: Option<u16>,
    /// The document that the figures are from; `unchecked` in it where no second text was held against it.
    /// `NVIDIA H100 PCIe datasheet of 2022`
    pub source: String,
    /// What the driver reports, in MiB. 81559
    #[serde(default)]
    pub driver_memory_mib: Vec<u32>,
    /// Printed labels that do not follow from the name. `H100 80GB HBM3`
    #[serde(default)]
    pub spellings: Vec<String>,
    /// Printed labels that other models share. `RTX 6000`
    #[serde(default)]
    pub shared_spellings: Vec<String>,
    /// The name, cut up as a label is.
    #[serde(skip)]
    parts: Parts,
    /// The form factor as a form word.
    #[serde(skip)]
    form: Option<&'static str>,
}

/// A label with a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved<'m> {
    /// The model.
    pub model: &'m GpuModel,
    /// Marketed memory of one card in GB, or of the slice where the offer is one; `None` where nothing decides it. 80
    pub memory_gb: Option<Decimal>,
    /// Whether a memory or form given beside the label contradicts it. The label wins, and the row is flagged.
    pub conflict: bool,
}

/// All models, and the ways to find them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GpuModels {
    #[serde(rename = "model")]
    models: Vec<GpuModel>,
    /// Names and spellings as keys.
    #[serde(skip)]
    by_key: HashMap<String, usize>,
    /// Spellings that stand for a model word, beside which form and memory words may stand; of several models if shared.
    #[serde(skip)]
    by_word: HashMap<String, Vec<usize>>,
}

impl GpuModels {
    /// The models built into the program.
    #[must_use]
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<GpuModels> =
            LazyLock::new(|| GpuModels::parse(include_str!("gpu_models.toml")).expect("gpu_models.toml is tested here"));
        &BUILT_IN
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        let mut all: Self = toml::from_str(text)?;
        for (at, model) in all.models.iter_mut().enumerate() {
            model.parts = Parts::of(&model.name);
            model.form = model.form_factor.as_deref().and_then(form_word);
            if model.parts.word.is_empty() {
                model.parts.word.clone_from(&model.parts.key);
            }
            all.by_key.insert(model.parts.key.clone(), at);
            let own = model.spellings.iter().map(|spelling| Parts::of(spelling));
            all.by_key.extend(own.clone().map(|spelling| (spelling.key, at)));
            // Only a spelling that is all model word: "H100 HBM3" must not make every "H100" an SXM.
            let whole = own.filter(|spelling| spelling.word == spelling.key);
            for spelling in whole.chain(model.shared_spellings.iter().map(|spelling| Parts::of(spelling))) {
                all.by_word.entry(spelling.word).or_default().push(at);
            }
        }
        Ok(all)
    }

    /// Every model, in the order of the file.
    #[must_use]
    pub fn models(&self) -> &[GpuModel] {
        &self.models
    }

    /// The model of exactly this canonical name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&GpuModel> {
        self.models.iter().find(|model| model.name == name)
    }

    /// The model of a printed label. `provider_labels` are the manifest's and go before everything else. `memory_gb` (of one
    /// card, or of the slice when `is_fraction`) and `form_factor` are what the source says beside the label: they narrow a
    /// name that leaves them open, and never overrule one that does not. A slice's memory does neither.
    ///
    /// # Errors
    /// When no model accounts for the whole label, when several do, and when the label names a slice of a card although the
    /// offer is not one.
    pub fn resolve(
        &self,
        label: &str,
        provider_labels: &BTreeMap<String, String>,
        memory_gb: Option<Decimal>,
        form_factor: Option<&str>,
        is_fraction: bool,
    ) -> Result<Resolved<'_>, GpuLabelError> {
        let unknown = || GpuLabelError::Unknown { label: label.to_owned() };
        let ambiguous = |models: &[usize]| GpuLabelError::Ambiguous {
            label: label.to_owned(),
            candidates: models.iter().map(|&at| self.models[at].name.clone()).collect(),
        };
        let mut parts = Parts::of(label);
        let is_same = |printed: &str| Parts::of(printed).key == parts.key;
        let alike = || provider_labels.iter().find(|(printed, _)| is_same(printed)).map(|(_, name)| name);
        if let Some(name) = provider_labels.get(label).or_else(alike) {
            parts = Parts::of(name);
        }
        let beside = Known { form: form_factor.and_then(form_word), memory: memory_gb.filter(|_| !is_fraction) };
        let mut listed = self.by_key.get(&parts.key).copied();
        if let (Some(rest), None) = (form_factor, beside.form) {
            // A source may keep the rest of the name in its form field: "H100" and "NVL".
            listed = self.by_key.get(&Parts::of(&format!("{} {rest}", parts.key)).key).copied().or(listed);
        }
        if listed.is_none() && parts.is_slice && !is_fraction {
            return Err(unknown());
        }
        // Figures in a listed label may be of other things: the 480 GB of "GH200 480GB" are not the card's.
        let printed = if listed.is_some() { Known::default() } else { parts.known };
        let mut listed = listed.map(|at| vec![at]).or_else(|| self.by_word.get(&parts.word).cloned()).unwrap_or_default();
        if listed.len() > 1 {
            // Memory alone tells apart the cards that share a spelling; without it none is meant more than another.
            let all = listed.clone();
            listed.retain(|&at| parts.known.or(beside).memory.is_some_and(|gb| self.models[at].counts(gb).is_some()));
            if listed.len() != 1 {
                return Err(ambiguous(&all));
            }
        }
        let of = |&at: &usize| (&self.models[at].parts.word, printed.or(self.models[at].parts.known));
        let (word, named) = listed.first().map_or((&parts.word, printed), of);
        let family = self.models.iter().find(|model| model.parts.word == *word).map_or("", |model| &model.family);
        // A bare family word says the least, so that what stands beside it may choose any form of the family.
        let is_bare = Parts::of(family).key == parts.key;
        let all = if is_bare { beside.or(named) } else { named.or(beside) };
        // Where what stands beside the label contradicts it, the label is left; where an offer is a slice, the memory in its
        // label may be the slice's.
        let (form, memory) = (Known { form: named.form, ..all }, Known { memory: named.memory, ..all });
        let slice = if is_fraction { Known { memory: None, ..all } } else { named };
        let tries = [(false, all), (is_bare, all), (false, form), (false, memory), (false, named), (false, slice)];
        let pick = |(is_family, known): (bool, Known)| {
            let is_wanted = |model: &GpuModel| if is_family { model.family == family } else { model.parts.word == *word };
            Some((known, self.pick(is_wanted, known))).filter(|(_, found)| !found.is_empty())
        };
        let (known, found) = tries.into_iter().find_map(pick).ok_or_else(unknown)?;
        let [at] = found[..] else { return Err(ambiguous(&found)) };
        let model = &self.models[at];
        Ok(Resolved {
            model,
            memory_gb: match model.memory_gb[..] {
                _ if is_fraction => memory_gb.or(parts.slice_memory),
                [] => all.memory,
                [only] => Some(only),
                _ => known.memory.and_then(|gb| model.counts(gb)),
            },
            // A form is compared only where the model has one.
            conflict: !model.suits(Known { form: beside.form.filter(|_| model.form.is_some()), ..beside })
                || (beside.form.is_some() && known.form.is_none())
                || (beside.memory.is_some() && known.memory.is_none()),
        })
    }

    /// The models that say the most of what is known, and nothing that is not.
    fn pick(&self, is_wanted: impl Fn(&GpuModel) -> bool, known: Known) -> Vec<usize> {
        let group = || self.models.iter().enumerate().filter(|(_, model)| is_wanted(model));
        // Where no model of the group has a form to compare (superchips, chips), a form says nothing.
        let known = Known { form: known.form.filter(|_| group().any(|(_, model)| model.form.is_some())), ..known };
        let says = |model: &GpuModel| {
            let Known { form, memory } = model.parts.known;
            let is_known = (form.is_none() || known.form.is_some()) && (memory.is_none() || known.memory.is_some());
            (is_known && model.suits(known)).then(|| u8::from(form.is_some()) + u8::from(memory.is_some()))
        };
        let Some(most) = group().filter_map(|(_, model)| says(model)).max() else { return Vec::new() };
        group().filter(|(_, model)| says(model) == Some(most)).map(|(at, _)| at).collect()
    }

    /// The models that a person means in a filter: `h100`, `a100-80`, `4090`, `h100sxm`. A form or memory takes only models
    /// that surely have it. Empty when nothing matches.
    #[must_use]
    pub fn matching(&self, typed: &str) -> Vec<&GpuModel> {
        let Parts { key, word, known, .. } = Parts::of(typed);
        let split = word.rsplit_once(' ').map(|(word, gb)| (word.to_owned(), gb.parse().ok()));
        let words = ["", "rtx", "gtx"].map(|series| (format!("{series}{word}"), known.memory)).into_iter().chain(split);
        for (word, memory) in words {
            let is_meant = |(at, model): &(usize, &GpuModel)| {
                let is_spelling = self.by_word.get(&word).is_some_and(|models| models.contains(at));
                is_spelling || model.parts.word == word || Parts::of(&model.family).key == word
            };
            let is_sure =
                |model: &&GpuModel| model.suits(Known { memory, ..known }) && (memory.is_none() || model.memory_gb.len() == 1);
            let meant = self.models.iter().enumerate().filter(is_meant).map(|(_, model)| model);
            let mut found = meant.filter(is_sure).collect::<Vec<_>>();
            // "H100 PCIe" is the card of that name, and not every H100 that goes into such a slot.
            let is_in_name = |model: &GpuModel| known.form.is_none() || model.parts.known.form.is_some();
            if found.iter().any(|model| is_in_name(model)) {
                found.retain(|model| is_in_name(model));
            }
            if !found.is_empty() {
                return found;
            }
        }
        self.by_key.get(&key).map(|&at| &self.models[at]).into_iter().collect()
    }

    /// Up to five canonical names that share most letter pairs with what was typed, nearest first: for the message that
    /// nothing matched.
    #[must_use]
    pub fn suggest(&self, typed: &str) -> Vec<&str> {
        let pairs = |key: &str| key.chars().zip(key.chars().skip(1)).collect::<BTreeSet<_>>();
        let typed = pairs(&Parts::of(typed).key);
        let likeness = |name: BTreeSet<_>| 200 * name.intersection(&typed).count() / (name.len() + typed.len()).max(1);
        let near = self.models.iter().map(|model| (likeness(pairs(&model.parts.key)), model.name.as_str()));
        let mut near = near.collect::<Vec<_>>();
        near.retain(|(likeness, _)| *likeness >= 40);
        near.sort_by_key(|(likeness, _)| Reverse(*likeness));
        near.into_iter().take(5).map(|(_, name)| name).collect()
    }
}

impl GpuModel {
    /// The marketed figure that a figure in GB counts: the nearest within 7 %, which is as far as MiB, GiB and usable GB lie
    /// apart, or the first where the table lists the figure as another counting.
    fn counts(&self, gb: Decimal) -> Option<Decimal> {
        let apart = |own: &Decimal| (gb - *own).abs();
        let near = self.memory_gb.iter().copied().filter(|own| apart(own) * Decimal::ONE_HUNDRED <= *own * Decimal::from(7));
        let is_listed = || self.also_counted_gb.iter().any(|other| apart(other) < Decimal::ONE);
        near.min_by_key(apart).or_else(|| self.memory_gb.first().copied().filter(|_| is_listed()))
    }

    /// Whether form and memory, where known, are this model's. A memory that is not published may be any.
    fn suits(&self, known: Known) -> bool {
        known.form.is_none_or(|form| self.form.is_some_and(|own| is_same_form(own, form)))
            && known.memory.is_none_or(|gb| self.memory_gb.is_empty() || self.counts(gb).is_some())
    }
}

fn whole_numbers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Decimal>, D::Error> {
    Ok(Vec::<u32>::deserialize(from)?.into_iter().map(Decimal::from).collect())
}

fn decimal_text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Decimal>, D::Error> {
    String::deserialize(from)?.parse().map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(label: &str, gb: Option<Decimal>, form: Option<&str>, is_slice: bool) -> Result<Resolved<'static>, GpuLabelError> {
        GpuModels::built_in().resolve(label, &BTreeMap::from([("odd".to_owned(), "H100 PCIe".to_owned())]), gb, form, is_slice)
    }

    /// Lines of `answer: label; label @GB; label #form; label @GB /` (a slice). The answer is a name, its memory, `!` for a conflict.
    fn check(table: &str) {
        for (answer, labels) in table.lines().filter_map(|line| line.trim().split_once(": ")) {
            for whole in labels.split("; ") {
                let label = whole.trim_end_matches(" /");
                let (label, form) = label.split_once(" #").map_or((label, None), |(label, form)| (label, Some(form)));
                let (label, gb) = label.split_once(" @").unwrap_or((label, ""));
                let found = match resolve(label, gb.parse().ok(), form, whole.ends_with(" /")) {
                    Ok(Resolved { model, memory_gb, conflict }) => {
                        let mark = if conflict { " !" } else { "" };
                        format!("{}, {}{mark}", model.name, memory_gb.map_or("?".to_owned(), |gb| gb.to_string()))
                    }
                    Err(GpuLabelError::Unknown { .. }) => "unknown".to_owned(),
                    Err(GpuLabelError::Ambiguous { candidates, .. }) => format!("one of {}", candidates.len()),
                };
                assert_eq!(found, answer, "{whole}");
            }
        }
    }

    #[test]
    fn every_name_and_spelling_is_one_model_s() {
        let mut keys = BTreeSet::new();
        for model in GpuModels::built_in().models() {
            let labels = std::iter::once(&model.name).chain(&model.spellings).map(|label| (label, None));
            let driver = model.driver_memory_mib.iter().map(|mib| (&model.name, Some(Decimal::from(*mib) / Decimal::from(1024))));
            for (label, gb) in labels.chain(driver) {
                assert!(keys.insert(Parts::of(label).key) || gb.is_some(), "{label}");
                let found = resolve(label, gb, model.form_factor.as_deref(), false);
                assert_eq!(found.map(|found| (&found.model.name, found.conflict)), Ok((&model.name, false)), "{label}");
            }
            assert!(GpuModels::built_in().matching(&model.name).contains(&model), "{}", model.name);
        }
    }

    #[test]
    fn labels_have_their_models_and_no_name_is_found_inside_another() {
        check(
            "H100 SXM, 80: H100 80GB HBM3; NVIDIA HGX H100; h100-80gb-sxm-ib.8x; 8x NVIDIA H100 SXM; Ｈ１００　ＳＸＭ; H100 @80 #SXM5
             H100 PCIe, 80: NVIDIA H100 PCIe; H100 PCIe NVLink (80GB); H100 @80 #PCIe; ODD
             H100 NVL, 94: H100 NVL; H100_nvl; H100NVL; H100 #NVL; H100 @93.6; H100 @94 #PCIe
             H100, 80: nvidia-h100-80gb; NVIDIA H100x8; 8 × H100; H100 #NVLink
             H200 SXM, 141: H200; H200_141GB; gpu-h200-sxm; H200 @150.8
             H200 NVL, 141: NVIDIA H200 NVL; H200 @143 #PCIe
             GH200, 96: GH200; NVIDIA GH200 480GB; gpu_1x_gh200
             B200, 180: NVIDIA B200 + HGX; b200-192gb; B200 @179 #SXM6
             B300, 288: NVIDIA B300 SXM6 AC; B300 SXM6 268GB; B300 @262.5; B300 @270
             GB200, 186: NVIDIA GB200 NVL72; GB200-NVL-186GB; GB200 @192 #NVL72
             A100 SXM 80GB, 80: A100_sxm4_80G; NVIDIA A100 SXM (80 GB); A100 SXM @80; A100 @79.6 #SXM4
             A100 SXM 80GB, 80 !: gpu_8x_a100_80gb_sxm4 @40; A100-SXM4-80GB #PCIe
             A100 SXM 40GB, 40: NVIDIA A100-SXM4-40GB; A100 SXM @40
             A100 PCIe 80GB, 80: A100 80GB PCIe; NVIDIA A100 80GB PCIe NVLink; a100-pcie-80gb
             A100 80GB, 80: A100, 80 GB; A100 80GB NVLink; A100 @80
             A100, ?: NVIDIA_A100; nvidia-tesla-a100
             A10, 24: A10; A10 (24 GB PCIe)
             A10G, 24: A10G
             V100 SXM2 32GB, 32: V100-SXM2-32GB; V100-SXM2 @32
             V100, ?: V100; Tesla V100 NVLINK
             V100, ? !: V100 @24
             L40S, 48: L40S; 1 × L40s PCIe; NVIDIA L40S with AMD CPU; L40S @44.7
             L40, 48: L40
             L4, 24: L4; l4-pcie-24gb; L4 @22.35
             Quadro RTX 6000, 24: Quadro RTX 6000; RTX6000 24GB; RTX 6000 @24
             RTX A6000, 48: RTX A6000; A6000; A6000_48GB; rtxa6000-pcie-48gb
             RTX 6000 Ada, 48: RTX 6000 Ada Generation; RTX6000Ada; RTX6000 Ada 48GB
             RTX PRO 6000, 96: RTX PRO 6000 Blackwell; RTX-PRO6000; RTX_PRO_6000B_96GB; RTX 6000 @96
             RTX PRO 6000 Server, 96: NVIDIA RTX PRO 6000 Blackwell Server Edition; RTX-PRO6000-SE; pro6000se
             RTX 4000 Ada, 20: RTX 4000 @20; gpu-rtx4000x1-20gb
             RTX 4090, 24: geforcertx4090-pcie-24gb; NVIDIA GeForce RTX 4090 @23.99
             RTX 4090 48GB mod, 48: RTX 4090 @48; 4090-48G
             MI300X, 192: AMD Instinct™ MI300X; AMD_Radeon_Instinct_MI300X; 1x MI300x
             MI325X, 256 !: MI325X @288
             one of 4: RTX 6000; RTX 6000 @48; RTX6000 @24 /
             unknown: A1000; H100T; A10 0; L40S SXM; H100 SXM4; A100/H100; A100 40GB 80GB; H100 SXM PCIe; L4 48GB; v2; GPU; H; 8x",
        );
    }

    #[test]
    fn a_slice_is_never_a_card() {
        check(
            "unknown: A100 MIG 1g.10gb; A10-4Q; A10*1/12; T4/8; PRO 6000 MIG 24GB; vGPU8
             A100, 4: A100 @4 /; A100 MIG 2g.10gb @4 /
             A10, 8: NVIDIA A10*1/3 @8 /; A10-8Q /
             RTX PRO 6000 Server, 24: NVIDIA RTX PRO 6000 Blackwell Server Edition MIG 1g.24gb /
             RTX PRO 6000, 24: PRO 6000 MIG 24GB /
             A100 80GB, 10: GRID A100D-10C /",
        );
    }

    #[test]
    fn a_person_types_less_than_a_name() {
        for (typed, names) in
            "h100: H100, H100 SXM, H100 PCIe, H100 NVL; h100sxm: H100 SXM; h100 pcie: H100 PCIe; l4: L4; mi300x: MI300X; \
             a100-80: A100 80GB, A100 SXM 80GB, A100 PCIe 80GB; 4090 24gb: RTX 4090; a6000: RTX A6000; h1000: "
                .split("; ")
                .filter_map(|line| line.split_once(": "))
        {
            let found = GpuModels::built_in().matching(typed);
            assert_eq!(found.iter().map(|model| model.name.as_str()).collect::<Vec<_>>().join(", "), names, "{typed}");
        }
        assert_eq!(GpuModels::built_in().suggest("h1000").first(), Some(&"H100"));
    }
}
