//! One rank that goes through steps: send, wait for the own messages and for those of others, next step.

/// State of such a rank. Messages of a later step may arrive early, from ranks that are ahead.
#[derive(Clone, Default, Debug)]
pub(super) struct Exchange {
    /// Current step, from 0.
    pub(super) step: u64,
    unsent: u32,
    awaited: u32,
    /// (step, messages) that came before their step.
    early: Vec<(u64, u32)>,
}

impl Exchange {
    /// Begins `step` with so many own messages and so many to come.
    pub(super) fn begin(&mut self, step: u64, sends: u32, receives: u32) {
        self.step = step;
        self.unsent = sends;
        self.awaited = receives;
        if let Some(index) = self.early.iter().position(|&(early, _)| early == step) {
            let (_, arrived) = self.early.swap_remove(index);
            self.awaited = self.awaited.saturating_sub(arrived);
        }
    }

    /// An own message of the current step was delivered.
    pub(super) fn sent(&mut self) {
        self.unsent = self.unsent.saturating_sub(1);
    }

    /// A message of `step` has come.
    pub(super) fn received(&mut self, step: u64) {
        if step == self.step {
            self.awaited = self.awaited.saturating_sub(1);
            return;
        }
        match self.early.iter_mut().find(|(early, _)| *early == step) {
            Some((_, count)) => *count += 1,
            None => self.early.push((step, 1)),
        }
    }

    /// Whether the current step is over.
    pub(super) fn is_done(&self) -> bool {
        self.unsent == 0 && self.awaited == 0
    }
}
