//! What other threads want of the switch's thread: its status, and other settings. They say so over a channel, and the
//! switch's thread looks into it between two batches of frames.

use std::{
    io::{self, Write},
    os::unix::net::UnixStream,
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use tokio::{sync::oneshot, time};

use crate::{reload::Live, status::Status};

/// How long the switch's thread may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the switch's thread is to do.
#[derive(Debug)]
pub enum Order {
    /// Tell the status.
    Tell(oneshot::Sender<Status>),
    /// Go on with other settings.
    Change(Box<Live>),
}

/// Orders to the switch's thread.
#[derive(Debug, Clone)]
pub struct Handle {
    orders: Sender<Order>,
    wake: Arc<UnixStream>,
}

/// The switch's end: what is wanted, and what wakes it.
#[derive(Debug)]
pub struct Inbox {
    /// What is wanted.
    pub orders: Receiver<Order>,
    /// Readable when there is an order.
    pub wake: UnixStream,
}

/// A handle and the switch's end of it.
///
/// # Errors
/// When the system has no more descriptors.
pub fn channel() -> io::Result<(Handle, Inbox)> {
    let (theirs, ours) = UnixStream::pair()?;
    theirs.set_nonblocking(true)?;
    ours.set_nonblocking(true)?;
    let (sender, receiver) = mpsc::channel();
    let handle = Handle {
        orders: sender,
        wake: Arc::new(theirs),
    };
    let inbox = Inbox {
        orders: receiver,
        wake: ours,
    };
    Ok((handle, inbox))
}

impl Handle {
    /// The status, or `None` if the switch does not answer.
    pub async fn status(&self) -> Option<Status> {
        let (sender, receiver) = oneshot::channel();
        self.orders.send(Order::Tell(sender)).ok()?;
        self.wake();
        time::timeout(PATIENCE, receiver).await.ok()?.ok()
    }

    /// Lets the switch go on with other settings.
    pub fn change(&self, live: Live) {
        // A switch that has ended needs none.
        let _ = self.orders.send(Order::Change(Box::new(live)));
        self.wake();
    }

    /// Makes the switch's thread look up.
    pub fn wake(&self) {
        // A full pipe will wake it just as well.
        let _ = (&*self.wake).write(&[1]);
    }

    /// A stream that wakes the switch's thread when something is written to it.
    ///
    /// # Errors
    /// When the system has no more descriptors.
    pub fn waker(&self) -> io::Result<UnixStream> {
        self.wake.try_clone()
    }
}
