-- A ledger as the third version of the format wrote it: three conversations with clients elsewhere. Never changed: later versions must open it.
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
ALTER TABLE summaries ADD COLUMN served INTEGER NOT NULL DEFAULT 0;
CREATE INDEX to_be_driven ON summaries (updated) WHERE served AND open_turn IS NOT NULL AND NOT waiting;
ALTER TABLE pending ADD COLUMN expires INTEGER;
CREATE INDEX pending_expires ON pending (expires) WHERE state = 'open';
CREATE TABLE requests (
    key TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    digest TEXT NOT NULL
) WITHOUT ROWID;
INSERT INTO sessions (number, id) VALUES
    (1,'0190a6b2-8000-7a11-9e57-3f0d5f2a0001'),
    (2,'0190a6b2-8000-7a11-9e57-3f0d5f2a0002'),
    (3,'0190a6b2-8000-7a11-9e57-3f0d5f2a0003');
INSERT INTO events (place, turn, time, version, kind, content, data) VALUES
    (4294967297,1,1720374887786,1,'turn_started','turn 1 started','{"limits":{"max_tool_turns":50,"max_tool_depth":8,"max_model_attempts":4,"max_result_chars":6000},"mode":"ask","model":"desk","directory":"/srv/app","served":{"tools":[{"name":"get_weather","description":"The weather of a city.","input_schema":{"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}}],"request":{"key":"key-1","digest":"31e06f7d89feb99a0e6c0affe198748c3bb5bef5e3cc92d95cb9e996197d3fc3"}}}'),
    (4294967298,1,1720374887786,1,'user','How is it in Jena?',NULL),
    (4294967299,1,1720374887786,1,'system','Be brief.',NULL),
    (4294967300,1,1720374887787,1,'assistant','','{"reply_id":"reply_1_1","parts":[],"model":"desk","attempt":1,"stop":"tool_calls","context_seq":3}'),
    (4294967301,1,1720374887787,1,'tool_call','get_weather(city="Jena")','{"id":"call_1_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Jena\"}"},"reply_id":"reply_1_1"}'),
    (4294967302,1,1720374887787,1,'call_gated','call_1_1: allow (the client executes it)','{"call_id":"call_1_1","verdict":"allow","rule":"the client executes it","digest":"b9061f22d4decbb29fe2551dfcfef6ee1d771c1e10de20e75000216ae25bfb15","source":"client","read_only":false}'),
    (4294967303,1,1720374887787,1,'suspended','waits for call_1_1','{"continuation":"br-1720374887787-000006fc7bbbae7f09fc89","call_id":"call_1_1","expires":1720979687787}'),
    (4294967304,1,1720374887788,1,'resumed','answered','{"continuation":"br-1720374887787-000006fc7bbbae7f09fc89","answer":"b4ada8704c89292efc006b61be03c6653c94a257ebbbeddbd95ea8b61b867025","request":{"key":"key-2","digest":"f6a214f7a5fcda0c2cee9660b7fc29f5649e3c68aad48e20e950137c98913a68"}}'),
    (4294967305,1,1720374887788,1,'tool_result','10 characters from the client','{"tool_call_id":"call_1_1","name":"get_weather","output":"8 °C, rain","success":true}'),
    (4294967306,1,1720374887790,1,'assistant','Rain in Jena.','{"reply_id":"reply_1_2","parts":[],"model":"desk","attempt":1,"stop":"end","context_seq":9}'),
    (4294967307,1,1720374887790,1,'turn_ended','turn ended: end','{"reason":"end"}'),
    (4294967308,2,1720374887790,1,'turn_started','turn 2 started','{"limits":{"max_tool_turns":50,"max_tool_depth":8,"max_model_attempts":4,"max_result_chars":6000},"mode":"ask","model":"desk","directory":"/srv/app","served":{"tools":[{"name":"get_weather","description":"The weather of a city.","input_schema":{"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}}]}}'),
    (4294967309,2,1720374887790,1,'user','Write it down.',NULL),
    (4294967310,2,1720374887791,1,'assistant','','{"reply_id":"reply_2_1","parts":[],"model":"desk","attempt":1,"stop":"tool_calls","context_seq":13}'),
    (4294967311,2,1720374887791,1,'tool_call','file_write(path="a.txt", content="x")','{"id":"call_2_1","type":"function","function":{"name":"file_write","arguments":"{\"path\":\"a.txt\",\"content\":\"x\"}"},"reply_id":"reply_2_1"}'),
    (4294967312,2,1720374887791,1,'call_gated','call_2_1: ask (mode ask)','{"call_id":"call_2_1","verdict":"ask","rule":"mode ask","digest":"1389d53313083b1e5436bf0b29a8d5f05fd37912d2543b9172ef741df753021c","source":"builtin","read_only":false}'),
    (4294967313,2,1720374887792,1,'suspended','waits for call_2_1','{"continuation":"br-1720374887792-0000163a9bfebf0735a1e8","call_id":"call_2_1","expires":1720979687792}'),
    (8589934593,1,1720374887793,1,'turn_started','turn 1 started','{"limits":{"max_tool_turns":50,"max_tool_depth":8,"max_model_attempts":4,"max_result_chars":6000},"mode":"ask","model":"desk","directory":"/srv/app","served":{"tools":[{"name":"get_weather","description":"The weather of a city.","input_schema":{"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}}]}}'),
    (8589934594,1,1720374887793,1,'user','And in Ulm?',NULL),
    (8589934595,1,1720374887794,1,'assistant','','{"reply_id":"reply_1_1","parts":[],"model":"desk","attempt":1,"stop":"tool_calls","context_seq":2}'),
    (8589934596,1,1720374887794,1,'tool_call','get_weather(city="Ulm")','{"id":"call_1_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Ulm\"}"},"reply_id":"reply_1_1"}'),
    (8589934597,1,1720374887794,1,'call_gated','call_1_1: allow (the client executes it)','{"call_id":"call_1_1","verdict":"allow","rule":"the client executes it","digest":"adc8a67fe9639d2f2249561bb616c35dacfea1d7ad5c7c44a10665681949dbf1","source":"client","read_only":false}'),
    (8589934598,1,1720374887794,1,'suspended','waits for call_1_1','{"continuation":"br-1720374887794-000005d1f21ed2f85129ac","call_id":"call_1_1","expires":1720979687794}'),
    (12884901889,1,1720374887795,1,'turn_started','turn 1 started','{"limits":{"max_tool_turns":50,"max_tool_depth":8,"max_model_attempts":4,"max_result_chars":6000},"mode":"ask","model":"desk","directory":"/srv/app","served":{"tools":[{"name":"get_weather","description":"The weather of a city.","input_schema":{"properties":{"city":{"type":"string"}},"required":["city"],"type":"object"}}]}}'),
    (12884901890,1,1720374887795,1,'user','And there?',NULL),
    (12884901891,1,1720374887795,1,'assistant','','{"reply_id":"reply_1_1","parts":[],"model":"desk","attempt":1,"stop":"tool_calls","context_seq":2}'),
    (12884901892,1,1720374887795,1,'tool_call','get_weather(city="Ulm")','{"id":"call_1_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Ulm\"}"},"reply_id":"reply_1_1"}'),
    (12884901893,1,1720374887795,1,'call_gated','call_1_1: allow (the client executes it)','{"call_id":"call_1_1","verdict":"allow","rule":"the client executes it","digest":"adc8a67fe9639d2f2249561bb616c35dacfea1d7ad5c7c44a10665681949dbf1","source":"client","read_only":false}'),
    (12884901894,1,1720374887795,1,'suspended','waits for call_1_1','{"continuation":"br-1720374887795-00000533aa328bd9d69fe6","call_id":"call_1_1","expires":1720979687795}'),
    (12884901895,1,1720374887796,1,'cancelled','cancelled by the client','{"reason":"cancelled by the client"}'),
    (12884901896,1,1720374887796,1,'tool_result','not run: the turn was stopped first','{"tool_call_id":"call_1_1","name":"get_weather","output":"{\"error\":\"not run: the turn was stopped first\"}","success":false,"end":"not_run"}'),
    (12884901897,1,1720374887796,1,'assistant','[stopped: cancelled by the client]','{"reply_id":"reply_1_2","parts":[],"model":null,"attempt":0,"stop":"closing","context_seq":0}'),
    (12884901898,1,1720374887796,1,'turn_ended','turn ended: cancelled','{"reason":"cancelled"}');
INSERT INTO leases (session, owner, fence, until) VALUES
    ('0190a6b2-8000-7a11-9e57-3f0d5f2a0001',NULL,3,1720374947791),
    ('0190a6b2-8000-7a11-9e57-3f0d5f2a0002',NULL,1,1720374947793),
    ('0190a6b2-8000-7a11-9e57-3f0d5f2a0003',NULL,1,1720374947795);
INSERT INTO summaries (number, created, updated, events, title, directory, open_turn, waiting, served) VALUES
    (1,1720374887786,1720374887792,17,'How is it in Jena?','/srv/app',2,1,1),
    (2,1720374887793,1720374887794,6,'And in Ulm?','/srv/app',1,1,1),
    (3,1720374887795,1720374887796,10,'And there?','/srv/app',NULL,0,1);
INSERT INTO waiting_calls (number, position, call, needs_answer, at_client) VALUES
    (1,0,'call_2_1',1,0),
    (2,0,'call_1_1',0,1);
INSERT INTO pending (continuation, number, seq, call, state, expires) VALUES
    ('br-1720374887787-000006fc7bbbae7f09fc89',1,7,'call_1_1','answered',1720979687787),
    ('br-1720374887792-0000163a9bfebf0735a1e8',1,17,'call_2_1','open',1720979687792),
    ('br-1720374887794-000005d1f21ed2f85129ac',2,6,'call_1_1','open',1720979687794),
    ('br-1720374887795-00000533aa328bd9d69fe6',3,6,'call_1_1','closed',1720979687795);
INSERT INTO requests (key, number, seq, digest) VALUES
    ('key-1',1,1,'31e06f7d89feb99a0e6c0affe198748c3bb5bef5e3cc92d95cb9e996197d3fc3'),
    ('key-2',1,8,'f6a214f7a5fcda0c2cee9660b7fc29f5649e3c68aad48e20e950137c98913a68');
PRAGMA application_id = 1634300776;
PRAGMA user_version = 3;
