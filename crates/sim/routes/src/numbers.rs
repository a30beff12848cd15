//! `raddle mgid`: the number of each group, and where it puts the group's tree.

use raddle_multicast::mgid::{find_clash, share_trees};
use raddle_text::{Files, InputError};
use serde_json::{Value as Json, json};

use crate::{
    resolve::{Resolved, places_of},
    run::describe,
};

/// The MGIDs that the groups of a route file have or get: a row for each group with its colour, tree group and TN
/// (equations (1) to (4)), the colours of the layers, and which groups will share a tree.
///
/// # Errors
/// A wrong route file, or groups for which there are too few colours.
pub fn number_groups(text: &str, path: &str, files: &dyn Files) -> Result<Json, InputError> {
    let resolved = Resolved::numbered(text, path, files)?;
    let (Some(trees), Some(map)) = (&resolved.trees, &resolved.map) else {
        return Ok(describe(&resolved));
    };
    let mgids: Vec<_> = resolved.groups.iter().map(|group| group.mgid).collect();
    let places = places_of(&resolved.fabric, map);
    let sharing = places
        .as_ref()
        .filter(|_| find_clash(&resolved.set, &mgids, trees).is_none())
        .and_then(|places| share_trees(&resolved.set, &mgids, trees, places).ok());
    // The general allocator finds layers of its own.
    let layer_of = |colour: u32| {
        let found = resolved.layers.iter().find(|layer| {
            (layer.first_colour..layer.first_colour + layer.colours).contains(&colour)
        });
        found.map(|layer| layer.layer)
    };
    let rows: Vec<Json> = (0..)
        .zip(&resolved.set.communicators)
        .zip(&mgids)
        .map(|((number, communicator), &mgid): ((usize, _), _)| {
            let place = trees.first(mgid);
            let shares = sharing.as_ref().map(|sharing| sharing.tree_of[number]);
            json!({
                "group": number,
                "name": communicator.name,
                "layer": layer_of(place.colour).unwrap_or(communicator.layer),
                "members": communicator.members.len(),
                "mgid": mgid,
                "colour": place.colour,
                "tree_group": place.group,
                "tn": place.tn,
                "second_tn": trees.second(mgid).map(|place| place.tn),
                "shares_with": shares.filter(|&first| first != number),
            })
        })
        .collect();
    let mut answer = describe(&resolved);
    answer["rows"] = rows.into();
    answer["layers"] = resolved
        .layers
        .iter()
        .map(|layer| {
            json!({
                "layer": layer.layer,
                "groups": layer.groups,
                "first_colour": layer.first_colour,
                "colours": layer.colours,
            })
        })
        .collect();
    answer["trees"] = trees.count().into();
    answer["sharing"] = sharing.map_or(Json::Null, |sharing| {
        json!({
            "trees_left": sharing.trees_left,
            "max_tfi": sharing.max_tfi,
            "merges": sharing.merges(),
        })
    });
    Ok(answer)
}
