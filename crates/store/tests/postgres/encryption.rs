//! Encrypted connections, with a certificate of the test's own.

use super::server::{PASSWORD_ENCODED, PostgresServer, USER};
use super::{append, says, session, store};
use aish_store::{SessionFilter, Store as _};

async fn list(address: &str) -> Result<usize, String> {
    let list = store(address).list(SessionFilter::default()).await;
    list.map(|list| list.len()).map_err(|error| error.to_string())
}

/// SPEC 9.5: `sslmode` is honoured: encrypted or not, and whose certificate is believed.
#[tokio::test]
async fn sslmode() {
    let mut server = PostgresServer::start();
    let by_port = server.database_by_port();
    append(&store(&by_port), &session(1), 0, vec![says("x")]).await.unwrap();
    let told = list(&format!("{by_port}?sslmode=require")).await.unwrap_err();
    assert!(told.contains("server does not support TLS"), "{told}");

    let authority = server.encrypt();
    let authority = authority.display();
    assert_eq!(list(&format!("{by_port}?sslmode=require")).await, Ok(1));
    let named = format!(
        "postgres://{USER}:{PASSWORD_ENCODED}@localhost:{}/test_1",
        server.port()
    );
    let known = format!("sslrootcert={authority}");
    assert_eq!(list(&format!("{named}?sslmode=verify-full&{known}")).await, Ok(1));
    for refused in [
        format!("{named}?sslmode=verify-full"),
        // The certificate is for a name, not for an address.
        format!("{by_port}?sslmode=verify-full&{known}"),
    ] {
        let told = list(&refused).await.unwrap_err();
        assert!(told.contains("TLS") && told.contains("certificate"), "{told}");
    }
    let encrypted =
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE ssl AND application_name = 'aish'";
    let replica = store(&format!("{by_port}?sslmode=require"));
    replica.check().await.unwrap();
    assert_ne!(server.psql("test_1", encrypted), "0");
}
