//! Rows, columns and lines of a process grid (section 3.1 and equation (5)).

use super::{
    Communicator, GroupError, GroupSet, MAX_MEMBERSHIPS, bad, countable,
    layering::{cycle_colour, cycle_colours, literal_colour, literal_colours},
    terminals_of, used_terminals,
};

/// How the groups of a grid are put into layers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Layering {
    /// Few layers: rows by the two-window colouring of the cycle of row numbers, columns and lines by the
    /// (P-1)-th power of the cycles of length X and X*Y ([`cycle_colour`]). Ours.
    #[default]
    Tight,
    /// The layers of the proof of Theorem 3: 2P-1 per direction (equation (5)).
    Literal,
    /// No layers: for the general allocator. The layer of a group is its direction.
    None,
}

impl Layering {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tight => "tight",
            Self::Literal => "literal",
            Self::None => "none",
        }
    }
}

/// A grid of X x Y (x Z) processes, x fastest, of which every row, column and line is one group.
///
/// Process n of the terminal whose first process is (a, b, c) sits at
/// ((a+n) mod X, (b + (a+n) div X) mod Y, c + (bX+a+n) div (XY)).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid {
    /// Lengths X, Y and, for three dimensions, Z; from 1.
    pub dims: Vec<u32>,
    /// Processes on each terminal, from 1.
    pub processes_per_terminal: u32,
    /// How the groups are put into layers.
    pub layering: Layering,
}

/// Directions of a grid: along x (rows), y (columns) and z (lines).
const DIRECTIONS: [char; 3] = ['x', 'y', 'z'];

impl Grid {
    /// The groups on the first of `terminals` terminals: x groups by z then y, y groups by z then x, z groups by y
    /// then x, layers of each direction after those of the one before.
    ///
    /// # Errors
    /// Other than 2 or 3 lengths, a length of 0, more processes than fit, and a layering that would let a terminal
    /// meet a layer twice: more processes per terminal than X, or (literal, three dimensions) Y = 1.
    pub fn groups(&self, terminals: u32) -> Result<GroupSet, GroupError> {
        let shape = self.shape()?;
        let per_terminal = self.processes_per_terminal;
        let processes = shape.iter().map(|&length| u128::from(length)).product();
        let processes = countable(processes)?;
        let used = used_terminals(processes, terminals, per_terminal)?;
        let memberships = processes * self.dims.len() as u64;
        if memberships > MAX_MEMBERSHIPS {
            return Err(GroupError::TooLarge {
                what: "memberships",
                count: memberships.into(),
                limit: MAX_MEMBERSHIPS,
            });
        }
        let layers = GridLayers::new(&self.dims, per_terminal, self.layering)?;
        let [x_len, y_len, z_len] = shape;
        let number = |x: u64, y: u64, z: u64| (z * y_len + y) * x_len + x;

        let mut communicators = Vec::new();
        let mut push = |name, layer, members: Vec<u32>| {
            communicators.push(Communicator {
                name,
                layer,
                members,
            });
        };
        let flat = self.dims.len() == 2;
        let name = |direction: usize, first: (char, u64), second: (char, u64)| {
            let direction = DIRECTIONS[direction];
            let part = |(axis, at): (char, u64)| match (flat, axis) {
                (true, 'z') => String::new(),
                _ => format!("-{axis}{at}"),
            };
            format!("{direction}{}{}", part(first), part(second))
        };
        for z in 0..z_len {
            for y in 0..y_len {
                let row = (0..x_len).map(|x| number(x, y, z));
                push(
                    name(0, ('y', y), ('z', z)),
                    layers.row(y, z),
                    terminals_of(row, per_terminal),
                );
            }
        }
        for z in 0..z_len {
            for x in 0..x_len {
                let column = (0..y_len).map(|y| number(x, y, z));
                push(
                    name(1, ('x', x), ('z', z)),
                    layers.column(x),
                    terminals_of(column, per_terminal),
                );
            }
        }
        if !flat {
            for y in 0..y_len {
                for x in 0..x_len {
                    let line = (0..z_len).map(|z| number(x, y, z));
                    push(
                        name(2, ('x', x), ('y', y)),
                        layers.line(x, y),
                        terminals_of(line, per_terminal),
                    );
                }
            }
        }
        Ok(GroupSet {
            communicators,
            layers: layers.count(),
            layered: self.layering != Layering::None,
            terminals: used,
        })
    }

    /// X, Y and Z; Z is 1 in two dimensions.
    fn shape(&self) -> Result<[u64; 3], GroupError> {
        let shape = match *self.dims {
            [x, y] => [x, y, 1],
            [x, y, z] => [x, y, z],
            _ => {
                let cure = "a grid has 2 or 3 lengths, as in [64, 32, 16]";
                return Err(bad("dims", format!("{:?}", self.dims), cure));
            }
        };
        if shape.contains(&0) {
            let cure = "every length must be at least 1";
            return Err(bad("dims", format!("{:?}", self.dims), cure));
        }
        Ok(shape.map(u64::from))
    }
}

/// The layers of a grid's groups.
#[derive(Clone, Debug)]
pub(crate) struct GridLayers {
    layering: Layering,
    x_len: u64,
    y_len: u64,
    z_len: u64,
    per_terminal: u64,
    flat: bool,
}

impl GridLayers {
    pub(crate) fn new(
        dims: &[u32],
        per_terminal: u32,
        layering: Layering,
    ) -> Result<Self, GroupError> {
        let (x_len, y_len) = (dims[0], dims[1]);
        let refuse = |rule, cure| {
            let dims: Vec<String> = dims.iter().map(u32::to_string).collect();
            Err(GroupError::NotLayered {
                layering: layering.name(),
                rule,
                per_terminal,
                dims: dims.join("x"),
                cure,
            })
        };
        if layering != Layering::None && per_terminal > x_len {
            return refuse(
                "at most X processes per terminal",
                "let x be the longest direction, or use the general allocator",
            );
        }
        if layering == Layering::Literal && dims.len() == 3 && per_terminal > 1 && y_len < 2 {
            return refuse(
                "Y of at least 2",
                "use the tight layering, or two dimensions",
            );
        }
        Ok(Self {
            layering,
            x_len: x_len.into(),
            y_len: y_len.into(),
            z_len: dims.get(2).map_or(1, |&z| z.into()),
            per_terminal: per_terminal.into(),
            flat: dims.len() == 2,
        })
    }

    /// Consecutive processes of one terminal lie in at most this many rows.
    fn row_window(&self) -> u64 {
        self.per_terminal.min(2)
    }

    /// Layers of each direction.
    fn counts(&self) -> [u64; 3] {
        let counts = match self.layering {
            Layering::Tight => [
                cycle_colours(self.y_len * self.z_len, self.row_window()),
                cycle_colours(self.x_len, self.per_terminal),
                cycle_colours(self.x_len * self.y_len, self.per_terminal),
            ],
            Layering::Literal => [
                literal_colours(self.per_terminal),
                literal_colours(self.per_terminal),
                literal_colours(self.per_terminal),
            ],
            Layering::None => [1, 1, 1],
        };
        [counts[0], counts[1], if self.flat { 0 } else { counts[2] }]
    }

    pub(crate) fn count(&self) -> u32 {
        self.counts().iter().sum::<u64>() as u32
    }

    /// Layer of the x group at (y, z).
    pub(crate) fn row(&self, y: u64, z: u64) -> u32 {
        let colour = match self.layering {
            Layering::Tight => cycle_colour(
                z * self.y_len + y,
                self.y_len * self.z_len,
                self.row_window(),
            ),
            Layering::Literal => literal_colour(y, self.per_terminal),
            Layering::None => 0,
        };
        colour as u32
    }

    /// Layer of the y groups at x.
    pub(crate) fn column(&self, x: u64) -> u32 {
        let colour = match self.layering {
            Layering::Tight => cycle_colour(x, self.x_len, self.per_terminal),
            Layering::Literal => literal_colour(x, self.per_terminal),
            Layering::None => 0,
        };
        (self.counts()[0] + colour) as u32
    }

    /// Layer of the z group at (x, y).
    pub(crate) fn line(&self, x: u64, y: u64) -> u32 {
        let colour = match self.layering {
            Layering::Tight => cycle_colour(
                y * self.x_len + x,
                self.x_len * self.y_len,
                self.per_terminal,
            ),
            Layering::Literal => literal_colour(x, self.per_terminal),
            Layering::None => 0,
        };
        let counts = self.counts();
        (counts[0] + counts[1] + colour) as u32
    }
}
