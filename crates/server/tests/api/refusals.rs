//! Requests that are none: each is refused with its kind, in one shape (SPEC 9.8).

use crate::bench::Bench;
use axum::body::Body;
use http::Request;
use serde_json::json;

/// SPEC 9.8: unknown paths and methods; a method that is not there says which are.
#[tokio::test]
async fn paths_and_methods() {
    let bench = Bench::new([]);
    for path in [
        "/api/nothing",
        "/api",
        "/api/chat/",
        "//",
        "/page/nothing.js",
        "/api/sessions/a/b/c",
    ] {
        bench.get(path).await.refused(404, "not_found", "");
    }
    let check = async |method: &str, path: &str, allow: &str| {
        let refused = bench.ask((method, path), &[], "").await;
        refused.refused(405, "method_not_allowed", "");
        assert_eq!(refused.headers["allow"], allow, "{method} {path}");
    };
    check("GET", "/api/chat", "POST").await;
    check("DELETE", "/api/sessions", "GET,HEAD").await;
    check("PUT", "/api/sessions/a/tool_result", "POST").await;
    check("OPTIONS", "/healthz", "GET,HEAD").await;
    check("BREW", "/", "GET,HEAD").await;
}

/// SPEC 9.8: each path of the description is answered by the methods that it names, and by no others.
#[tokio::test]
async fn methods_as_described() {
    let bench = Bench::new([]);
    let document = bench.get("/openapi.json").await.accepted();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let refused = bench.ask(("BREW", &path.replace("{id}", "a")), &[], "").await;
        refused.refused(405, "method_not_allowed", "");
        let described = methods.as_object().unwrap().keys();
        let expect: Vec<&str> = described
            .map(|method| match method.as_str() {
                "get" => "GET,HEAD",
                "post" => "POST",
                other => panic!("{other} {path}"),
            })
            .collect();
        assert_eq!(refused.headers["allow"], expect.join(","), "{path}");
    }
}

/// SPEC 9.8: bodies that are no JSON, not said to be, or of another shape; the message says where and what was meant.
#[tokio::test]
async fn bodies() {
    let bench = Bench::new([]);
    let send = async |kind: Option<&str>, body: &str| {
        let mut request = Request::builder().method("POST").uri("/api/chat");
        if let Some(kind) = kind {
            request = request.header("content-type", kind);
        }
        bench.send(request.body(Body::from(body.to_owned())).unwrap()).await
    };
    let good = "{\"message\":\"\"}";
    for kind in [
        None,
        Some("text/plain"),
        Some("application/x-www-form-urlencoded"),
        Some("application/jsonx"),
        Some(""),
    ] {
        send(kind, good)
            .await
            .refused(415, "unsupported_media_type", "application/json");
    }
    for kind in ["application/json", "Application/JSON; charset=utf-8"] {
        send(Some(kind), good)
            .await
            .refused(422, "invalid_request", "`message` is empty");
    }
    let json = async |body: &str| send(Some("application/json"), body).await;
    json("{\"message\":\n ")
        .await
        .refused(400, "malformed_json", "line 2 column 1");
    json("").await.refused(400, "malformed_json", "line 1");
    json("[]").await.refused(422, "invalid_request", "expected an object");
    json("{\"message\":\"hi\",\"tolls\":[]}")
        .await
        .refused(422, "invalid_request", "did you mean `tools`?");
    json("{\"message\":\"hi\",\"stream\":\"yes\"}")
        .await
        .refused(422, "invalid_request", "expected a boolean");
    let missing = bench
        .post("/api/sessions/br-1-1/approval", &json!({"call_id": "a", "digest": "b"}))
        .await;
    missing.refused(422, "invalid_request", "missing field `answer`");
    let strange = bench.post("/api/sessions/br-1-1/cancel", &json!({"now": true})).await;
    strange.refused(422, "invalid_request", "unknown field `now`");
}

/// SPEC 9.8: what stands behind the `?` is known, there once and within its bounds.
#[tokio::test]
async fn queries() {
    let bench = Bench::new([]);
    let check = async |query: &str, says: &str| {
        let refused = bench.get(&format!("/api/sessions?{query}")).await;
        refused.refused(422, "invalid_request", says);
    };
    check("limit=many", "`limit` must be a whole number from 1 to 500").await;
    check("limit=0", "`limit`").await;
    check("limit=1&limit=2", "twice").await;
    check("qery=x", "did you mean `query`?").await;
    check(&format!("query={}", "x".repeat(2_000)), "longer than").await;
}

/// SPEC 9.8: the description of the API names every path that there is.
#[tokio::test]
async fn the_description() {
    let bench = Bench::new([]);
    let document = bench.get("/openapi.json").await.accepted();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{id}", "0190a6c0-0000-7000-8000-000000000000");
        for method in methods.as_object().unwrap().keys() {
            let answer = bench.ask((&method.to_uppercase(), &path), &[], "").await;
            assert!(
                answer.status != 405 && !answer.body.contains("there is nothing at"),
                "{method} {path}: {answer:?}"
            );
        }
    }
}

/// SPEC 9.9: the page is there with the headers that keep it in its place, and a browser that knows it is not sent it again.
#[tokio::test]
async fn the_page() {
    let bench = Bench::new([]);
    let page = bench.get("/").await;
    assert_eq!(
        (page.status, page.headers["content-type"].to_str().unwrap()),
        (200, "text/html; charset=utf-8")
    );
    assert!(page.headers.contains_key("content-security-policy") && page.body.contains("<title>"));
    let tag = page.headers["etag"].to_str().unwrap();
    let again = bench.ask(("GET", "/"), &[("if-none-match", tag)], "").await;
    assert_eq!((again.status, again.body.as_str()), (304, ""));
    assert_eq!(
        bench.get("/page/app.js").await.headers["content-type"],
        "text/javascript; charset=utf-8"
    );
}
