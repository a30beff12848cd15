//! Where in the kernel the program sits: what differs between the places.

use std::{error::Error, time::Duration};

use aya::{
    Ebpf, EbpfLoader,
    programs::{
        Program, ProgramError, ProgramFd, SchedClassifier, TcAttachType, TestRun as _,
        TestRunOptions, TestRunResult, Xdp, XdpMode,
        tc::{SchedClassifierLinkId, TcAttachOptions},
        xdp::XdpLinkId,
    },
    util::KernelVersion,
};

use super::{Action, layout::FOR_SOCKETS};
use crate::fast::Link;

/// The object of one place, compiled by build.rs.
macro_rules! object {
    ($name:literal) => {
        aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o"))
    };
}

static XDP: &[u8] = object!("xdp");
static TC: &[u8] = object!("tc");

/// The program of incoming frames, and under XDP the one that addresses results on their way out.
const SWITCH: &str = "raddle_switch";
const EXIT: &str = "raddle_exit";

/// Where in the kernel the program sits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hook {
    /// XDP in the driver of the card, before the kernel has a buffer for the frame; in the generic place where the driver
    /// has none.
    #[default]
    Native,
    /// XDP behind the driver, on the kernel's own buffers, each of which is copied before.
    Generic,
    /// Traffic control's ingress (tcx, Linux 6.6), on the kernel's own buffers as they are. For virtual cables (veth), which
    /// carry those anyway.
    Tc,
}

/// The program on an interface.
pub(super) enum Attachment {
    Xdp(XdpLinkId),
    Tc(SchedClassifierLinkId),
}

impl Hook {
    /// The best one for virtual cables that this kernel has.
    #[must_use]
    pub fn for_cables() -> Self {
        if KernelVersion::current().is_ok_and(|now| now >= KernelVersion::new(6, 6, 0)) {
            Self::Tc
        } else {
            Self::Generic
        }
    }

    /// Loads the object of this place, with room for `slots`, and gives it with the program that leaves by a map of
    /// interfaces, where there is one.
    pub(super) fn load(self, slots: u32) -> Result<(Ebpf, Option<ProgramFd>), Box<dyn Error>> {
        let generic = u8::from(self == Self::Generic);
        let mut loader = EbpfLoader::new();
        loader.map_max_entries("slots", slots);
        if self == Self::Tc {
            let mut bpf = loader.load(TC)?;
            program::<SchedClassifier>(&mut bpf, SWITCH)?.load()?;
            return Ok((bpf, None));
        }
        let mut bpf = loader
            .override_global("generic", &generic, true)
            .load(XDP)?;
        program::<Xdp>(&mut bpf, SWITCH)?.load()?;
        let exit = program::<Xdp>(&mut bpf, EXIT)?;
        exit.load()?;
        let exit = exit.fd()?.try_clone()?;
        Ok((bpf, Some(exit)))
    }

    /// Puts the program on an interface, as long as this process lives.
    pub(super) fn attach(self, bpf: &mut Ebpf, link: &Link) -> Result<Attachment, Box<dyn Error>> {
        if self == Self::Tc {
            // The link of tcx ends with the process; a filter of traffic control would stay.
            let options = TcAttachOptions::TcxOrder(aya::programs::LinkOrder::default());
            let program = program::<SchedClassifier>(bpf, SWITCH)?;
            let id =
                program.attach_with_options(&link.interface, TcAttachType::Ingress, options)?;
            return Ok(Attachment::Tc(id));
        }
        let program = program::<Xdp>(bpf, SWITCH)?;
        let generic = |program: &mut Xdp| program.attach_to_if_index(link.index, XdpMode::Skb);
        // Drivers without native XDP get the generic one, which is slower and does the same.
        let id = match self {
            Self::Native => program
                .attach_to_if_index(link.index, XdpMode::Driver)
                .or_else(|_| generic(program)),
            Self::Generic | Self::Tc => generic(program),
        };
        Ok(Attachment::Xdp(id?))
    }

    /// Takes the program off; with an interface that has gone, it went.
    pub(super) fn detach(bpf: &mut Ebpf, attachment: Attachment) {
        let _ = match attachment {
            Attachment::Xdp(id) => program::<Xdp>(bpf, SWITCH).map(|on| on.detach(id)),
            Attachment::Tc(id) => program::<SchedClassifier>(bpf, SWITCH).map(|on| on.detach(id)),
        };
    }

    /// Runs the program on a frame without sending anything: what becomes of it; it leaves the frame in `out`.
    pub(super) fn run(
        self,
        bpf: &mut Ebpf,
        frame: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Action, Box<dyn Error>> {
        out.resize(frame.len() + 2048, 0);
        let mut context = [0; CONTEXT];
        let result = self.test(
            bpf,
            TestRunOptions {
                data_in: Some(frame),
                data_out: Some(out),
                ctx_out: (self == Self::Tc).then_some(&mut context),
                ..TestRunOptions::new()
            },
        )?;
        out.truncate(result.data_size_out as usize);
        let mark = u32::from_ne_bytes([context[8], context[9], context[10], context[11]]);
        match (self, result.return_value) {
            (Self::Tc, 2) | (Self::Native | Self::Generic, 1) => Ok(Action::Drop),
            (Self::Tc, 7) if mark == FOR_SOCKETS => Ok(Action::Pass),
            (Self::Native | Self::Generic, 2) => Ok(Action::Pass),
            (Self::Native | Self::Generic, 3) => Ok(Action::Back),
            (Self::Tc, 7) | (Self::Native | Self::Generic, 4) => Ok(Action::Redirect),
            (_, other) => Err(format!("it returned {other}").into()),
        }
    }

    /// The mean time of many runs on a frame that the program does not change.
    pub(super) fn time(
        self,
        bpf: &mut Ebpf,
        frame: &[u8],
        runs: u32,
    ) -> Result<Duration, ProgramError> {
        let result = self.test(
            bpf,
            TestRunOptions {
                data_in: Some(frame),
                repeat: runs,
                ..TestRunOptions::new()
            },
        )?;
        Ok(result.duration)
    }

    fn test(
        self,
        bpf: &mut Ebpf,
        options: TestRunOptions<'_>,
    ) -> Result<TestRunResult, ProgramError> {
        match self {
            Self::Native | Self::Generic => program::<Xdp>(bpf, SWITCH)?.test_run(options),
            Self::Tc => program::<SchedClassifier>(bpf, SWITCH)?.test_run(options),
        }
    }
}

/// Bytes of `struct __sk_buff` (linux/bpf.h), whose third word is the mark.
const CONTEXT: usize = 192;

fn program<'a, P>(bpf: &'a mut Ebpf, name: &str) -> Result<&'a mut P, ProgramError>
where
    &'a mut P: TryFrom<&'a mut Program, Error = ProgramError>,
{
    bpf.program_mut(name)
        .ok_or(ProgramError::NotLoaded)?
        .try_into()
}
