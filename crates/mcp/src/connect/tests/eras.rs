//! Which era a server speaks, and how each kind of odd server is found out.

use super::scripted::{Scripted, config, connected, discovered, idle, initialized, request};
use crate::connect::Attempt;
use crate::host::Nobody;
use crate::{Era, ErrorKind};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// SPEC 6.2: a server that knows no `server/discover` is asked `initialize` on the same connection.
#[tokio::test]
async fn older_servers() {
    let server = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear_of("server/discover").await;
        assert_eq!(
            probe["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        wire.refuse(&probe, -32601).await;
        let hello = wire.hear_of("initialize").await;
        let client = json!({"name": "aish", "version": env!("CARGO_PKG_VERSION")});
        assert_eq!(
            (&hello["params"]["protocolVersion"], &hello["params"]["clientInfo"]),
            (&json!("2025-11-25"), &client)
        );
        assert_eq!(
            hello["params"]["capabilities"],
            json!({"elicitation": {"form": {}, "url": {}}, "sampling": {}})
        );
        wire.reply(&hello, initialized()).await;
        let list = wire.hear_of("tools/list").await;
        assert!(
            list["params"]["_meta"]
                .get("io.modelcontextprotocol/protocolVersion")
                .is_none()
        );
        wire.reply(&list, json!({"tools": [], "more": 1})).await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &server, Arc::new(Nobody)).await.unwrap();
    let about = peer.about();
    assert_eq!(
        (about.name.as_str(), about.version.as_str(), about.protocol.as_str()),
        ("script", "7", "2025-11-25")
    );
    assert_eq!(about.instructions.as_deref(), Some("be kind"));
    assert_eq!(about.capabilities["odd"], 1);
    assert_eq!(
        request(&*peer, "tools/list").await.unwrap(),
        json!({"tools": [], "more": 1})
    );
    assert_eq!(server.opened.load(Ordering::SeqCst), 1);
}

/// SPEC 6.2: a server of the newer protocol gets no `initialize`, and everything it needs with each request.
#[tokio::test]
async fn newer_servers() {
    let server = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear().await;
        wire.reply(&probe, discovered()).await;
        let call = wire.hear().await;
        assert_eq!(call["method"], "tools/call");
        let meta = &call["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "aish");
        wire.reply(&call, json!({"resultType": "complete", "content": []}))
            .await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &server, Arc::new(Nobody)).await.unwrap();
    assert_eq!(
        (peer.about().name.as_str(), peer.about().protocol.as_str()),
        ("script", "2026-07-28")
    );
    let result = request(&*peer, "tools/call").await.unwrap();
    assert_eq!(result, json!({"resultType": "complete", "content": []}));
}

/// SPEC 6.2: a server that exits, or says something senseless, when it is asked `server/discover` is asked the older way.
#[tokio::test]
async fn servers_that_the_probe_upsets() {
    let exits = Scripted::new(|number, mut wire| async move {
        if number == 0 {
            wire.hear_of("server/discover").await;
            return;
        }
        wire.initialize().await;
        idle(wire).await;
    });
    connected(Era::Unknown, &exits, Arc::new(Nobody)).await.unwrap();
    assert_eq!(exits.opened.load(Ordering::SeqCst), 2);

    for answer in [
        json!({}),
        json!(null),
        json!({"supportedVersions": ["2199-01-01"]}),
        json!([]),
    ] {
        let senseless = Scripted::new(move |_, mut wire| {
            let answer = answer.clone();
            async move {
                let probe = wire.hear_of("server/discover").await;
                wire.reply(&probe, answer).await;
                wire.initialize().await;
                idle(wire).await;
            }
        });
        let peer = connected(Era::Unknown, &senseless, Arc::new(Nobody)).await.unwrap();
        assert_eq!(peer.about().protocol, "2025-11-25");
        assert_eq!(senseless.opened.load(Ordering::SeqCst), 1);
    }
}

/// SPEC 6.2: a server that does not answer `server/discover` is asked the older way on the same connection, and one that is
/// only slow may still answer the newer way.
#[tokio::test]
async fn servers_that_are_silent() {
    let ignores = Scripted::new(|_, mut wire| async move {
        wire.initialize().await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &ignores, Arc::new(Nobody)).await.unwrap();
    assert_eq!(
        (peer.about().protocol.as_str(), ignores.opened.load(Ordering::SeqCst)),
        ("2025-11-25", 1)
    );

    let slow = Scripted::new(|_, mut wire| async move {
        let probe = wire.hear_of("server/discover").await;
        let hello = wire.hear_of("initialize").await;
        wire.reply(&probe, discovered()).await;
        wire.refuse(&hello, -32022).await;
        idle(wire).await;
    });
    let peer = connected(Era::Unknown, &slow, Arc::new(Nobody)).await.unwrap();
    assert_eq!(
        (peer.about().protocol.as_str(), slow.opened.load(Ordering::SeqCst)),
        ("2026-07-28", 1)
    );
}

/// SPEC 6.2: a server that the probe leaves deaf is started anew within the deadline; one that is always deaf ends with it.
#[tokio::test]
async fn servers_that_are_deaf() {
    let once = Scripted::new(|number, mut wire| async move {
        if number > 0 {
            wire.initialize().await;
        }
        idle(wire).await;
    });
    let patient = config(Era::Unknown, Duration::from_secs(4));
    let peer = Attempt::new(&patient, Arc::new(Nobody), once.clone())
        .run()
        .await
        .unwrap();
    assert_eq!(
        (peer.about().protocol.as_str(), once.opened.load(Ordering::SeqCst)),
        ("2025-11-25", 2)
    );

    let always = Scripted::new(|_, wire| idle(wire));
    for era in [Era::Unknown, Era::Stateless, Era::Initialize(None)] {
        let hasty = config(era, Duration::from_millis(300));
        let error = Attempt::new(&hasty, Arc::new(Nobody), always.clone())
            .run()
            .await
            .err()
            .unwrap();
        assert_eq!(error.kind, ErrorKind::Timeout);
    }
}

/// A version that is unknown here is named; one that is configured is offered.
#[tokio::test]
async fn versions() {
    let strange = Scripted::new(|_, mut wire| async move {
        let hello = wire.hear_of("initialize").await;
        assert_eq!(hello["params"]["protocolVersion"], "2025-03-26");
        wire.reply(&hello, json!({"protocolVersion": "2199-01-01", "capabilities": {}}))
            .await;
        idle(wire).await;
    });
    let era = Era::Initialize(Some("2025-03-26".to_owned()));
    let error = connected(era, &strange, Arc::new(Nobody)).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::Version);
    assert!(error.message.contains("2199-01-01"), "{error}");
    let era = Era::Initialize(Some("2026-07-28".to_owned()));
    assert_eq!(
        connected(era, &strange, Arc::new(Nobody)).await.err().unwrap().kind,
        ErrorKind::Version
    );
}
