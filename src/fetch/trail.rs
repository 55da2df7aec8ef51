//! Which pages were asked for, from where: loops, pages of two scopes, and the start page that leads to a page.

use std::collections::HashMap;

use gpuledger_scrapers::contract::PageRequest;

/// What makes two requests the same: the address and what is sent along.
pub(super) type Asked = (String, Option<String>);

/// What was asked for so far: from which page, and for which scope.
#[derive(Default)]
pub(super) struct Trail(HashMap<Asked, (Option<Asked>, String)>);

/// What a request is in the trail.
pub(super) enum Step {
    /// Not asked for yet.
    New,
    /// Asked for already, from a page beside the way here.
    Done,
    /// On the way here already: a loop.
    Back,
    /// Asked for already, for another scope.
    OfAnotherScope(String),
}

impl Trail {
    pub(super) fn step(&mut self, asked: &Asked, from: Option<&Asked>, request: &PageRequest) -> Step {
        let Some((_, of)) = self.0.get(asked) else {
            self.0.insert(asked.clone(), (from.cloned(), request.scope.clone()));
            return Step::New;
        };
        let of = of.clone();
        let mut before = from;
        while let Some(page) = before {
            if page == asked {
                return Step::Back;
            }
            before = self.0.get(page).and_then(|(from, _)| from.as_ref());
        }
        if of == request.scope { Step::Done } else { Step::OfAnotherScope(of) }
    }

    /// The start page that leads to a page.
    pub(super) fn root(&self, asked: &Asked) -> Asked {
        let mut page = asked;
        while let Some((Some(from), _)) = self.0.get(page) {
            page = from;
        }
        page.clone()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
