//! The communicators of this process that are seen by this part, for the report at the end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{communicator::Communicator as Decider, service};
use crate::{library::Plain, report::Listing};

type Communicator = Decider<Plain>;

struct Registry {
    live: Vec<Weak<Mutex<Communicator>>>,
    freed: Listing,
}

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    live: Vec::new(),
    freed: Listing::new(),
});

fn registry() -> MutexGuard<'static, Registry> {
    REGISTRY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A communicator was seen for the first time.
pub(crate) fn register(communicator: &Arc<Mutex<Communicator>>) {
    let mut registry = registry();
    if registry.live.len() == registry.live.capacity() {
        registry.live.retain(|known| known.strong_count() > 0);
    }
    registry.live.push(Arc::downgrade(communicator));
}

/// A communicator was freed.
pub(crate) fn forget(communicator: &Arc<Mutex<Communicator>>) {
    let mut communicator = communicator.lock().unwrap_or_else(PoisonError::into_inner);
    communicator.close();
    if let Some(summary) = communicator.summary() {
        registry().freed.add(summary);
    }
}

/// All ranks are past their last collective: groups end. Gives what is to be reported of all communicators.
pub(crate) fn end() -> Listing {
    let (mut all, live) = {
        let mut registry = registry();
        let live: Vec<_> = registry
            .live
            .drain(..)
            .filter_map(|known| known.upgrade())
            .collect();
        (std::mem::take(&mut registry.freed), live)
    };
    for communicator in live {
        let mut communicator = communicator.lock().unwrap_or_else(PoisonError::into_inner);
        communicator.release();
        communicator.close();
        if let Some(summary) = communicator.summary() {
            all.add(summary);
        }
    }
    service::stop();
    all
}
