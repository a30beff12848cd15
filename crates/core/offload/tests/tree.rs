//! Trees from paths, drawn by hand.

use std::net::Ipv4Addr;

use raddle_offload::tree::{Below, Hop, Tree, TreeError};
use raddle_wire::native::Reason;

const fn hop(tier: u8, number: u8, room: u32) -> Hop {
    Hop {
        address: Ipv4Addr::new(10, 255, tier, number),
        tier,
        room,
    }
}

const fn tor(number: u8) -> Hop {
    hop(1, number, 10)
}

/// The tree as text: a switch is tier.number(children), a member its number.
fn drawn(tree: &Tree) -> String {
    fn draw(tree: &Tree, at: usize) -> String {
        let switch = &tree.switches[at];
        let [_, _, tier, number] = switch.address.octets();
        let children = switch.children.iter().map(|child| match child {
            Below::Member(member) => member.to_string(),
            Below::Switch(below) => {
                assert_eq!(tree.switches[*below].parent, Some(at));
                assert_eq!(tree.switches[*below].depth, switch.depth + 1);
                draw(tree, *below)
            }
        });
        format!(
            "{tier}.{number}({})",
            children.collect::<Vec<_>>().join(" ")
        )
    }
    for (member, at) in (0..).zip(&tree.of_member) {
        assert!(tree.switches[*at].children.contains(&Below::Member(member)));
    }
    draw(tree, 0)
}

fn tree(paths: &[&[Hop]]) -> Result<String, TreeError> {
    let others = paths.iter().map(|path| Some(path.to_vec()));
    let paths: Vec<Option<Vec<Hop>>> = std::iter::once(None).chain(others).collect();
    Tree::from_paths(&paths).map(|tree| drawn(&tree))
}

#[test]
fn members_below_one_switch() {
    assert_eq!(tree(&[&[tor(1)], &[tor(1)]]).unwrap(), "1.1(0 1 2)");
}

#[test]
fn two_tiers_and_uneven_switches() {
    let s = hop(2, 1, 5);
    let found = tree(&[
        &[tor(1)],
        &[tor(2), s, tor(1)],
        &[tor(1)],
        &[tor(2), s, tor(1)],
    ]);
    assert_eq!(found.unwrap(), "2.1(1.1(0 1 3) 1.2(2 4))");
}

#[test]
fn a_master_alone_below_its_switch_hangs_on_the_next_one() {
    let s = hop(2, 1, 5);
    let found = tree(&[&[tor(2), s, tor(1)], &[tor(2), s, tor(1)]]);
    assert_eq!(found.unwrap(), "2.1(0 1.2(1 2))");
}

#[test]
fn two_members_below_different_switches_need_the_spine_only() {
    let found = tree(&[&[tor(2), hop(2, 1, 5), tor(1)]]);
    assert_eq!(found.unwrap(), "2.1(0 1)");
}

#[test]
fn of_several_spines_the_one_with_most_room_then_the_least_address() {
    let paths = |rooms: [u32; 3]| {
        let s = |n: u8| hop(2, n, rooms[usize::from(n) - 1]);
        tree(&[
            &[tor(1)],
            &[tor(2), s(1), tor(1)],
            &[tor(2), s(2), tor(1)],
            &[tor(3), s(3), tor(1)],
            &[tor(3), s(3), tor(1)],
        ])
    };
    assert_eq!(paths([3, 9, 4]).unwrap(), "2.2(1.1(0 1) 1.2(2 3) 1.3(4 5))");
    assert_eq!(paths([4, 4, 4]).unwrap(), "2.1(1.1(0 1) 1.2(2 3) 1.3(4 5))");
    assert_eq!(paths([0, 0, 4]).unwrap(), "2.3(1.1(0 1) 1.2(2 3) 1.3(4 5))");
    let error = paths([0, 0, 0]).unwrap_err();
    assert_eq!(error.reason(), Reason::NoRoom);
}

#[test]
fn three_tiers_with_two_cores_and_two_spines_in_each_pod() {
    let (a1, a2, b1, b2) = (hop(2, 1, 7), hop(2, 2, 8), hop(2, 3, 9), hop(2, 4, 9));
    let (c1, c2) = (hop(3, 1, 1), hop(3, 2, 2));
    let found = tree(&[
        &[tor(1)],
        &[tor(2), a1, tor(1)],
        &[tor(2), a2, tor(1)],
        &[tor(3), b1, c1, a1, tor(1)],
        &[tor(3), b2, c2, a2, tor(1)],
        &[tor(4), b2, c1, a1, tor(1)],
    ]);
    assert_eq!(
        found.unwrap(),
        "3.2(2.2(1.1(0 1) 1.2(2 3)) 2.3(1.3(4 5) 6))"
    );
}

#[test]
fn a_switch_that_does_not_compute_is_not_seen_and_not_missed() {
    // Between the first switches and the core there is a tier of plain ones.
    let core = hop(3, 1, 4);
    let found = tree(&[&[tor(1)], &[tor(2), core, tor(1)], &[tor(2), core, tor(1)]]);
    assert_eq!(found.unwrap(), "3.1(1.1(0 1) 1.2(2 3))");
}

#[test]
fn members_on_the_masters_host_are_below_its_switch() {
    let s = hop(2, 1, 5);
    let path = Some(vec![tor(2), s, tor(1)]);
    let tree = Tree::from_paths(&[None, None, path.clone(), path]).unwrap();
    assert_eq!(drawn(&tree), "2.1(1.1(0 1) 1.2(2 3))");
    assert_eq!(tree.members(Below::Switch(0)), [0, 1, 2, 3]);
}

#[test]
fn what_is_no_tree_is_refused() {
    let error = Tree::from_paths(&[None, None]).unwrap_err();
    assert_eq!(error, TreeError::NoSwitch { member: 0 });
    let error = tree(&[&[tor(1)], &[]]).unwrap_err();
    assert_eq!(
        (error.reason(), error),
        (Reason::NoSwitch, TreeError::NoSwitch { member: 2 })
    );
    let error = tree(&[&[tor(2), tor(1)]]).unwrap_err();
    assert_eq!(error, TreeError::Valley { member: 1 });
    let s = hop(2, 1, 5);
    let error = tree(&[&[tor(2), s, tor(3), s, tor(1)]]).unwrap_err();
    assert_eq!(error, TreeError::Valley { member: 1 });
    // The first switches of members 1 and 2 never meet the master's.
    let error = tree(&[&[tor(2)], &[tor(1)]]).unwrap_err();
    assert_eq!(error, TreeError::Roots { roots: 2 });
}
