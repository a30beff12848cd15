//! With how many nodes a process spoke in its last superstep: what it can know of the degrees in G'.

/// Counts distinct nodes, in and out.
#[derive(Debug)]
pub(crate) struct Degrees {
    superstep: u32,
    /// The superstep in which each node was counted last.
    counted: [Vec<u32>; 2],
    now: [u32; 2],
    before: [u32; 2],
}

const OUT: usize = 0;
const IN: usize = 1;

impl Degrees {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            superstep: 1,
            counted: [vec![0; nodes], vec![0; nodes]],
            now: [0; 2],
            before: [0; 2],
        }
    }

    pub(crate) fn sent_to(&mut self, node: u32) {
        self.count(OUT, node);
    }

    pub(crate) fn heard_of(&mut self, node: u32) {
        self.count(IN, node);
    }

    fn count(&mut self, way: usize, node: u32) {
        let counted = &mut self.counted[way][node as usize];
        if *counted != self.superstep {
            *counted = self.superstep;
            self.now[way] += 1;
        }
    }

    /// A superstep ends.
    pub(crate) const fn turn(&mut self) {
        self.superstep = self.superstep.wrapping_add(1);
        self.before = self.now;
        self.now = [0; 2];
    }

    /// Out-degree of this process's node and in-degree of its targets' nodes, estimated: its own ranks' and its
    /// neighbours' traffic is taken to be like its own.
    pub(crate) const fn estimate(&self) -> [u32; 2] {
        self.before
    }
}
