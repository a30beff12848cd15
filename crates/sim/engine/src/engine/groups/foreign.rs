//! What packets of groups cost hosts that are not in them.

use raddle_units::{NodeId, Span, Time};

use super::super::{
    context::Context,
    what::{HEARD, Kind, What},
};
use crate::{
    index::{PacketSlot, PortIndex},
    multicast::{ForeignTime, Multicast},
};

/// See the module.
#[derive(Debug, Default)]
pub(in super::super) struct Foreign {
    takes: ForeignTime,
    /// When each node of the process is through with packets of groups that it is not in; empty where they take no time.
    busy: Vec<Time>,
}

impl Foreign {
    pub(super) fn new(plan: Option<&Multicast>, nodes: usize) -> Self {
        let takes = plan.map_or_else(ForeignTime::default, |plan| plan.foreign);
        Self {
            takes,
            busy: if takes.is_zero() {
                Vec::new()
            } else {
                vec![Time::ZERO; nodes]
            },
        }
    }

    /// A packet of a group that `host` is not in takes its time there.
    pub(in super::super) fn overhear(&mut self, cx: &Context<'_>, host: NodeId, bytes: u32) {
        if let Some(busy) = self.busy.get_mut(cx.cut.place(host).0 as usize) {
            let takes = self.takes.packet + self.takes.byte * u64::from(bytes);
            *busy = cx.now.max(*busy) + takes;
        }
    }

    /// Whether a packet of a host's own group has to wait until the host is through with others'; then it is heard again.
    pub(in super::super) fn stands_behind(
        &mut self,
        cx: &mut Context<'_>,
        host: NodeId,
        port: PortIndex,
        handle: PacketSlot,
    ) -> bool {
        let Some(busy) = self.busy.get_mut(cx.cut.place(host).0 as usize) else {
            return false;
        };
        if *busy <= cx.now {
            return false;
        }
        let at = *busy;
        // Two of them stay in order, and none are heard at the same time.
        *busy = at + Span(1);
        let what = What::Heard(port, handle);
        cx.schedule(at, (Kind::Heard, port, HEARD), what);
        true
    }
}
