//! JSON reads that fail loudly and keep every number's characters.
//!
//! A number never passes through a float: it is read from its characters. Every value knows its place, and an object
//! knows which of its fields nobody has read.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use memchr::memmem;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::contract::{Page, Place, ScrapeError, SkipReason};
use crate::money;

/// A value and its place.
#[derive(Debug, Clone)]
pub struct Value<'a> {
    raw: &'a RawValue,
    page: &'a str,
    at: At<'a>,
}

/// An object and its place.
#[derive(Debug)]
pub struct Object<'a> {
    fields: Vec<Field<'a>>,
    page: &'a str,
    at: Rc<At<'a>>,
}

/// A place within a page. It is written out as a JSON pointer only when somebody asks: most rows of a price list are
/// read and left out, and nobody wants to know where they stood.
#[derive(Debug, Clone)]
enum At<'a> {
    Root,
    Field(Rc<At<'a>>, Cow<'a, str>),
    Element(Rc<At<'a>>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(parent, name) => write!(f, "{parent}/{}", escaped(name)),
            Self::Element(parent, index) => write!(f, "{parent}/{index}"),
        }
    }
}

#[derive(Debug)]
struct Field<'a> {
    name: Cow<'a, str>,
    raw: &'a RawValue,
    is_read: Cell<bool>,
}

/// The name of a field that holds text, to be looked for in the characters of JSON: it tells the rows that are worth
/// reading from the many that are not.
#[derive(Debug)]
pub struct FieldName(memmem::Finder<'static>);

/// A field that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    page: String,
    at: String,
    field: String,
    /// `None` when the field is not there.
    found: Option<String>,
    expected: &'static str,
}

impl From<FieldError> for ScrapeError {
    fn from(error: FieldError) -> Self {
        let found = error.found.unwrap_or_else(|| "no such field".to_owned());
        Self::ShapeChanged { page: error.page, at: error.at, expected: error.expected.to_owned(), found }
    }
}

impl From<FieldError> for SkipReason {
    fn from(error: FieldError) -> Self {
        match error.found {
            None => Self::FieldMissing { field: error.field },
            Some(found) => Self::FieldUnreadable { field: error.field, expected: error.expected, found },
        }
    }
}

/// The page's outermost object.
///
/// # Errors
/// When the page is not JSON (HTML, cut off, compressed) or not an object.
pub fn document(page: &Page) -> Result<Object<'_>, ScrapeError> {
    // One pass over a page that is what it should be; the slower way finds the words for one that is not.
    match serde_json::from_str::<Fields<'_>>(page.text()?) {
        Ok(fields) => Ok(Object { fields: fields.0, page: &page.name, at: Rc::new(At::Root) }),
        Err(_) => root(page)?.object().map_err(ScrapeError::from),
    }
}

/// The page's outermost object without one of its lists, and the elements of that list.
///
/// The long list of a page is nearly all of it, so it is split into its elements while the page is read, and not in a
/// second pass.
///
/// # Errors
/// When the page is not JSON or not an object, or has no list of that name.
pub fn document_and_list<'a>(page: &'a Page, list: &str) -> Result<(Object<'a>, Vec<Value<'a>>), ScrapeError> {
    let mut json = serde_json::Deserializer::from_str(page.text()?);
    let split = FieldsAndList { list }.deserialize(&mut json).and_then(|split| json.end().map(|()| split));
    match split {
        Ok((fields, Some(raws))) => {
            let root = Rc::new(At::Root);
            let at = At::Field(Rc::clone(&root), Cow::Owned(list.to_owned()));
            Ok((Object { fields: fields.0, page: &page.name, at: root }, elements(&page.name, at, raws)))
        }
        // The slower way finds the words for a page that is something else.
        _ => {
            let document = document(page)?;
            let elements = document.field(list)?.list()?;
            Ok((document, elements))
        }
    }
}

/// The page's outermost value.
///
/// # Errors
/// When the page is not JSON.
pub fn root(page: &Page) -> Result<Value<'_>, ScrapeError> {
    let text = page.text()?;
    let raw = serde_json::from_str::<&RawValue>(text).map_err(|error| ScrapeError::WrongFormat {
        page: page.name.clone(),
        expected: "JSON".to_owned(),
        found: if text.trim_start().starts_with('<') { format!("markup, {}", start_of(text)) } else { error.to_string() },
    })?;
    Ok(Value { raw, page: &page.name, at: At::Root })
}

impl FieldName {
    /// A name without characters that JSON escapes.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(memmem::Finder::new(&format!("\"{name}\"")).into_owned())
    }

    /// Whether the characters hold the name in its quotes, as a field or as a text.
    #[must_use]
    pub fn is_in(&self, json: &str) -> bool {
        self.0.find(json.as_bytes()).is_some()
    }

    /// The plain text of the first field of this name at any depth, and what follows it. `None` where there is no such
    /// field or it is not plain text; then the JSON has to be read.
    #[must_use]
    pub fn peek<'a>(&self, json: &'a str) -> Option<(&'a str, &'a str)> {
        let mut rest = json;
        loop {
            rest = rest[self.0.find(rest.as_bytes())? + self.0.needle().len()..].trim_start();
            // A quoted word without a colon is a value and not a name.
            let Some(value) = rest.strip_prefix(':') else { continue };
            let (text, rest) = value.trim_start().strip_prefix('"')?.split_once('"')?;
            return if text.contains('\\') { None } else { Some((text, rest)) };
        }
    }
}

/// One element of the list that is a field of the page's outermost object, cut out by whoever knows where it stands.
///
/// # Errors
/// When it is not JSON.
pub fn element<'a>(page: &'a Page, list: &str, index: usize, text: &'a str) -> Result<Value<'a>, ScrapeError> {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => {
            let at = At::Field(Rc::new(At::Root), Cow::Owned(list.to_owned()));
            Ok(Value { raw, page: &page.name, at: At::Element(Rc::new(at), index) })
        }
        Err(error) => Err(ScrapeError::WrongFormat {
            page: page.name.clone(),
            expected: format!("JSON at /{list}/{index}"),
            found: error.to_string(),
        }),
    }
}

impl<'a> Value<'a> {
    /// The place of this value.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { page: self.page.to_owned(), at: self.at.to_string() }
    }

    /// The characters of the value.
    #[must_use]
    pub fn characters(&self) -> &'a str {
        self.raw.get()
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.raw.get() == "null"
    }

    fn wrong(&self, expected: &'static str) -> FieldError {
        let at = self.at.to_string();
        FieldError {
            page: self.page.to_owned(),
            field: at.rsplit('/').next().unwrap_or(&at).to_owned(),
            at: or_root(at),
            found: Some(start_of(self.raw.get())),
            expected,
        }
    }

    /// The value as an object.
    ///
    /// # Errors
    /// When it is something else.
    pub fn object(&self) -> Result<Object<'a>, FieldError> {
        let fields: Fields<'a> = serde_json::from_str(self.raw.get()).map_err(|_| self.wrong("an object"))?;
        Ok(Object { fields: fields.0, page: self.page, at: Rc::new(self.at.clone()) })
    }

    /// The value's elements.
    ///
    /// # Errors
    /// When it is not a list.
    pub fn list(&self) -> Result<Vec<Value<'a>>, FieldError> {
        let raws: Vec<&'a RawValue> = serde_json::from_str(self.raw.get()).map_err(|_| self.wrong("a list"))?;
        Ok(elements(self.page, self.at.clone(), raws))
    }

    /// The value as text.
    ///
    /// # Errors
    /// When it is not a string.
    pub fn text(&self) -> Result<Cow<'a, str>, FieldError> {
        let raw = self.raw.get();
        // A value is well-formed, so a string without a backslash is what stands between its quotes.
        if let Some(plain) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).filter(|text| !text.contains('\\')) {
            return Ok(Cow::Borrowed(plain));
        }
        match serde_json::from_str::<Text<'a>>(raw) {
            Ok(Text(text)) => Ok(text),
            Err(_) => Err(self.wrong("text")),
        }
    }

    /// The value as an exact decimal: a number, or a string that holds nothing but a number.
    ///
    /// # Errors
    /// When it is neither, or has more digits than can be kept.
    pub fn decimal(&self) -> Result<Decimal, FieldError> {
        let text = if self.raw.get().starts_with('"') { self.text()? } else { Cow::Borrowed(self.raw.get()) };
        money::decimal(text.trim()).ok_or_else(|| self.wrong("a number"))
    }

    /// The value as a whole number of zero or more.
    ///
    /// # Errors
    /// When it is anything else; a fraction is never cut.
    pub fn whole(&self) -> Result<u32, FieldError> {
        self.raw.get().parse().map_err(|_| self.wrong("a whole number"))
    }

    /// The value as yes or no.
    ///
    /// # Errors
    /// When it is neither `true` nor `false`.
    pub fn truth(&self) -> Result<bool, FieldError> {
        self.raw.get().parse().map_err(|_| self.wrong("true or false"))
    }
}

impl<'a> Object<'a> {
    /// The place of this object.
    #[must_use]
    pub fn place(&self) -> Place {
        Place { page: self.page.to_owned(), at: or_root(self.at.to_string()) }
    }

    /// A field that must be there. `null` counts as there.
    ///
    /// # Errors
    /// When it is not.
    pub fn field(&self, name: &str) -> Result<Value<'a>, FieldError> {
        self.find(name).ok_or_else(|| FieldError {
            page: self.page.to_owned(),
            at: format!("{}/{name}", self.at),
            field: name.to_owned(),
            found: None,
            expected: "a field of this name",
        })
    }

    /// A field that may be absent or `null`; both are `None`.
    #[must_use]
    pub fn optional(&self, name: &str) -> Option<Value<'a>> {
        self.find(name).filter(|value| !value.is_null())
    }

    /// Whether a field of this name is there, without reading it.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|field| field.name == name)
    }

    /// A text that must be there.
    ///
    /// # Errors
    /// When it is absent, `null` or no text.
    pub fn text(&self, name: &str) -> Result<Cow<'a, str>, FieldError> {
        self.field(name)?.text()
    }

    /// An exact decimal that must be there.
    ///
    /// # Errors
    /// When it is absent, `null` or no number.
    pub fn decimal(&self, name: &str) -> Result<Decimal, FieldError> {
        self.field(name)?.decimal()
    }

    /// An exact decimal that may be absent or `null`.
    ///
    /// # Errors
    /// When it is there and no number.
    pub fn optional_decimal(&self, name: &str) -> Result<Option<Decimal>, FieldError> {
        self.optional(name).map(|value| value.decimal()).transpose()
    }

    /// A text that may be absent or `null`.
    ///
    /// # Errors
    /// When it is there and no text.
    pub fn optional_text(&self, name: &str) -> Result<Option<Cow<'a, str>>, FieldError> {
        self.optional(name).map(|value| value.text()).transpose()
    }

    /// Names of the fields, in page order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(|field| field.name.as_ref())
    }

    /// Every field as a value, marked as read.
    pub fn values(&self) -> impl Iterator<Item = (&str, Value<'a>)> {
        self.fields.iter().map(|field| {
            field.is_read.set(true);
            (field.name.as_ref(), self.value_of(field))
        })
    }

    /// Reports the fields that nobody read and the manifest does not list.
    pub fn report_unread(&self, ignored: &[String], unread: &mut BTreeSet<String>) {
        for field in &self.fields {
            let known = field.is_read.get() || ignored.iter().any(|name| name == field.name.as_ref());
            if !known && !unread.contains(field.name.as_ref()) {
                unread.insert(field.name.clone().into_owned());
            }
        }
    }

    fn find(&self, name: &str) -> Option<Value<'a>> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        field.is_read.set(true);
        Some(self.value_of(field))
    }

    fn value_of(&self, field: &Field<'a>) -> Value<'a> {
        Value { raw: field.raw, page: self.page, at: At::Field(Rc::clone(&self.at), field.name.clone()) }
    }
}

/// Borrowed where the text has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

struct Fields<'a>(Vec<Field<'a>>);

/// Room for the fields of a usual row.
const USUAL_FIELDS: usize = 16;

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;

        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields<'de>, A::Error> {
                let mut fields = Vec::with_capacity(USUAL_FIELDS);
                while let Some((Text(name), raw)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    fields.push(Field { name, raw, is_read: Cell::new(false) });
                }
                Ok(Fields(fields))
            }
        }

        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// The fields of an object without one list, and the elements of that list.
struct FieldsAndList<'a> {
    list: &'a str,
}

impl<'de> DeserializeSeed<'de> for FieldsAndList<'_> {
    type Value = (Fields<'de>, Option<Vec<&'de RawValue>>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsAndList<'_> {
    type Value = (Fields<'de>, Option<Vec<&'de RawValue>>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut fields, mut list) = (Vec::new(), None);
        while let Some(Text(name)) = map.next_key::<Text<'de>>()? {
            if name != self.list {
                fields.push(Field { name, raw: map.next_value()?, is_read: Cell::new(false) });
            } else if list.replace(map.next_value()?).is_some() {
                return Err(A::Error::custom("the list stands twice"));
            }
        }
        Ok((Fields(fields), list))
    }
}

fn elements<'a>(page: &'a str, list: At<'a>, raws: Vec<&'a RawValue>) -> Vec<Value<'a>> {
    let list = Rc::new(list);
    let element = |(index, raw)| Value { raw, page, at: At::Element(Rc::clone(&list), index) };
    raws.into_iter().enumerate().map(element).collect()
}

/// A name as it stands in a JSON pointer.
fn escaped(name: &str) -> Cow<'_, str> {
    if name.contains(['~', '/']) { Cow::Owned(name.replace('~', "~0").replace('/', "~1")) } else { Cow::Borrowed(name) }
}

fn or_root(at: String) -> String {
    if at.is_empty() { "/".to_owned() } else { at }
}

/// The first characters of a text, for error messages.
#[must_use]
pub fn start_of(text: &str) -> String {
    const LONGEST: usize = 60;
    // A page may be one word of many megabytes.
    let text = text.trim_start();
    let head = &text[..text.floor_char_boundary(16 * LONGEST)];
    let line = head.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("`{}…`", &line[..end]),
        None if head.len() < text.trim_end().len() => format!("`{line}…`"),
        None => format!("`{line}`"),
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
