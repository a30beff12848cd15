//! Replays the corpus of the fuzz target of route files.

#[path = "../../../../fuzz/damage.rs"]
mod damage;
#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "../../../../fuzz/routes.rs"]
mod routes;

#[test]
fn route_files() {
    replay::replay("route", |bytes| damage::damage(routes::route, bytes));
}
