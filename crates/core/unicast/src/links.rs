//! Which links are up.

use raddle_fabric::Fabric;
use raddle_units::LinkId;

/// The links of a fabric that work at one point in time: one bit each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkState {
    words: Vec<u64>,
    links: usize,
}

impl LinkState {
    /// Every link works.
    pub fn all_up(fabric: &Fabric) -> Self {
        let links = fabric.links().len();
        Self {
            words: vec![u64::MAX; links.div_ceil(64)],
            links,
        }
    }

    /// Marks a link as working (`true`) or failed. Both directions fail together.
    ///
    /// # Panics
    /// When the link is not one of the fabric.
    pub fn set(&mut self, link: LinkId, up: bool) {
        assert!(
            link.index() < self.links,
            "{link} is not one of {} links",
            self.links
        );
        let (word, bit) = (link.index() / 64, 1u64 << (link.index() % 64));
        if up {
            self.words[word] |= bit;
        } else {
            self.words[word] &= !bit;
        }
    }

    /// Whether a link works.
    ///
    /// # Panics
    /// When the link is not one of the fabric.
    #[inline]
    pub fn is_up(&self, link: LinkId) -> bool {
        assert!(
            link.index() < self.links,
            "{link} is not one of {} links",
            self.links
        );
        self.words[link.index() / 64] >> (link.index() % 64) & 1 == 1
    }

    /// Number of links, working or not.
    pub fn link_count(&self) -> usize {
        self.links
    }
}
