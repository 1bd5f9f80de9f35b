//! The lease of a session while a turn of a client's runs (SPEC 2.12): taken and given back with what is appended.

use crate::house::{House, Ledger, asks, assert_replied, for_tool, settings, until, weather_call};
use crate::support::watched::{Fate, Watched};
use crate::support::{World, another_owner, within};
use aish_engine::ChatRequest;
use aish_provider::scripted::Act;

/// SPEC 2.12, 9.5, 11: a turn that waits once is four appends. The first of each drive takes the lease and the last gives it back, so
/// that nothing else is asked of the ledger for it.
#[tokio::test]
async fn a_cycle_is_four_appends() {
    for ledger in Ledger::all() {
        let store = Watched::deciding(ledger.connect(), |_, _| Fate::Write);
        store.let_leases_hang();
        let acts = [weather_call("Jena"), Act::text("ok")];
        let house = House::of(World::over(store.clone(), acts, Vec::new()), settings());
        // A tool that nobody declared is waited for only where a server is about to bring it.
        let request = ChatRequest {
            tools: None,
            ..asks("?")
        };
        let first = within(house.chat(request)).await.unwrap();
        assert_eq!(store.appends(), 2);
        let free = async || {
            let other = ledger.connect();
            let lease = other
                .acquire(&first.session, &another_owner(), 1, u64::MAX)
                .await
                .unwrap();
            other.release(&lease).await.unwrap();
            lease.fence
        };
        assert_eq!(free().await, 2);
        let last = within(house.result(&for_tool(&first), "sun")).await.unwrap();
        assert_replied(&last, "ok");
        assert_eq!(store.appends(), 4);
        assert_eq!(free().await, 4);
    }
}

/// SPEC 2.12, 9.4: an answer that comes while somebody else has the lease counts all the same; the turn goes on once it is given back.
#[tokio::test]
async fn answered_while_another_has_the_lease() {
    for ledger in Ledger::all() {
        let house = ledger.house([weather_call("Jena"), Act::text("ok")]);
        let first = within(house.chat(asks("?"))).await.unwrap();
        let other = ledger.connect();
        let lease = other
            .acquire(&first.session, &another_owner(), 1, u64::MAX)
            .await
            .unwrap();
        let waited = for_tool(&first);
        let answered = house.result(&waited, "sun");
        let given_back = async {
            until(async || house.count(&first.session, "resumed").await == 1).await;
            assert_eq!(house.world.model.remaining(), 1);
            other.release(&lease).await.unwrap();
        };
        let (last, ()) = within(async { tokio::join!(answered, given_back) }).await;
        assert_replied(&last.unwrap(), "ok");
    }
}
