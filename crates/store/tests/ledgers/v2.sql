-- A ledger as the second version of the format wrote it. Never changed: later versions must open it.
PRAGMA journal_mode = WAL;
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE
);
CREATE TABLE events (
    place INTEGER PRIMARY KEY,
    turn INTEGER NOT NULL,
    time INTEGER NOT NULL,
    version INTEGER NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    data TEXT
);
CREATE VIEW ledger AS
    SELECT sessions.id AS session, events.place & 4294967295 AS seq, turn, time, version, kind, content, data
    FROM events JOIN sessions ON sessions.number = events.place >> 32;
CREATE TABLE leases (
    session TEXT PRIMARY KEY,
    owner TEXT,
    fence INTEGER NOT NULL,
    until INTEGER NOT NULL
) WITHOUT ROWID;
-- The tables below are derived from the events and can be rebuilt from them.
CREATE TABLE summaries (
    number INTEGER PRIMARY KEY,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    events INTEGER NOT NULL,
    title TEXT NOT NULL,
    directory TEXT NOT NULL,
    open_turn INTEGER,
    waiting INTEGER NOT NULL
);
CREATE TABLE waiting_calls (
    number INTEGER NOT NULL,
    position INTEGER NOT NULL,
    call TEXT NOT NULL,
    needs_answer INTEGER NOT NULL,
    at_client INTEGER NOT NULL,
    PRIMARY KEY (number, position)
) WITHOUT ROWID;
CREATE TABLE pending (
    continuation TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    call TEXT,
    state TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX pending_open ON pending (number, seq) WHERE state = 'open';
CREATE INDEX typed ON events (
    time,
    kind,
    substr(CASE WHEN kind = 'command' AND json_valid(data) THEN data ->> '$.line' ELSE content END, 1, 16385),
    CASE WHEN kind = 'command' AND json_valid(data) THEN data ->> '$.directory' END
) WHERE kind IN ('user', 'command');
INSERT INTO sessions (number, id) VALUES (1, '0190a6b2-7c00-7a11-9e57-3f0d5f2a6c1d');
INSERT INTO events (place, turn, time, version, kind, content, data) VALUES
    (4294967297, 1, 1720000000000, 1, 'turn_started', 'turn 1 started', '{"mode":"ask","model":"desk","directory":"/srv/app"}'),
    (4294967298, 1, 1720000000001, 1, 'user', 'what is here?', NULL),
    (4294967299, 1, 1720000000002, 1, 'assistant', 'Let me look.', '{"reply_id":"reply_1_1","parts":[{"type":"text","text":"Let me look."}],"model":"qwen2.5-coder-7b","attempt":1,"stop":"tool_calls","context_seq":2}'),
    (4294967300, 1, 1720000000003, 1, 'tool_call', 'glob(pattern="*")', '{"id":"call_1_1","type":"function","function":{"name":"glob","arguments":"{\"pattern\":\"*\"}"},"reply_id":"reply_1_1"}'),
    (4294967301, 1, 1720000000004, 1, 'call_gated', 'ask: default', '{"call_id":"call_1_1","verdict":"ask","rule":"default","digest":"00ff","source":"builtin","read_only":true}'),
    (4294967302, 1, 1720000000005, 1, 'suspended', 'waits for an answer', '{"continuation":"br-1-a"}');
INSERT INTO leases (session, owner, fence, until) VALUES ('0190a6b2-7c00-7a11-9e57-3f0d5f2a6c1d', NULL, 3, 1720000030000);
INSERT INTO summaries (number, created, updated, events, title, directory, open_turn, waiting) VALUES
    (1, 1720000000000, 1720000000005, 6, 'what is here?', '/srv/app', 1, 1);
INSERT INTO waiting_calls (number, position, call, needs_answer, at_client) VALUES (1, 0, 'call_1_1', 1, 0);
INSERT INTO pending (continuation, number, seq, call, state) VALUES ('br-1-a', 1, 6, 'call_1_1', 'open');
PRAGMA application_id = 1634300776;
PRAGMA user_version = 2;
