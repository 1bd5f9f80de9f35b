"""Many suspended sessions for `bench/serve`: one that was lived through, copied in the store with ids of their own."""

import sqlite3

# A copy's session ends with its number, in the twelve digits behind the last dash; so does its continuation, in sixteen.
SESSION_DIGITS, CONTINUATION_DIGITS = 12, 16


def copied_id(text, digits, number):
    return f"{text[:-digits]}{number:0{digits}x}"


def in_sqlite(path, session, continuation, count):
    ledger = sqlite3.connect(path)
    ledger.create_function("session_of", 1, lambda number: copied_id(session, SESSION_DIGITS, number), deterministic=True)
    ledger.create_function("wait_of", 1, lambda number: copied_id(continuation, CONTINUATION_DIGITS, number), deterministic=True)
    (first,) = ledger.execute("SELECT number FROM sessions WHERE id = ?", [session]).fetchone()
    (last,) = ledger.execute("SELECT max(number) FROM sessions").fetchone()
    ledger.execute("CREATE TEMP TABLE copies AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) SELECT i FROM n", [count])
    for statement in [
        "INSERT INTO sessions (number, id) SELECT :last + i, session_of(i) FROM copies",
        """INSERT INTO events (place, turn, time, version, kind, content, data)
           SELECT ((:last + i) << 32) | (place & 4294967295), turn, time, version, kind, content, replace(data, :wait, wait_of(i))
           FROM copies, events WHERE place >> 32 = :first ORDER BY 1""",
        """INSERT INTO summaries (number, created, updated, events, title, directory, open_turn, waiting, served)
           SELECT :last + i, created, updated, events, title, directory, open_turn, waiting, served FROM copies, summaries WHERE number = :first""",
        """INSERT INTO waiting_calls (number, position, call, needs_answer, at_client)
           SELECT :last + i, position, call, needs_answer, at_client FROM copies, waiting_calls WHERE number = :first""",
        """INSERT INTO pending (continuation, number, seq, call, state, expires)
           SELECT wait_of(i), :last + i, seq, call, state, expires FROM copies, pending WHERE number = :first""",
        "INSERT INTO leases (session, owner, fence, until) SELECT session_of(i), owner, fence, until FROM copies, leases WHERE session = :session",
    ]:
        ledger.execute(statement, {"last": last, "first": first, "wait": continuation, "session": session})
    ledger.commit()
    ledger.close()


def in_postgres(postgres, database, session, continuation, count):
    copies = f"generate_series(1, {count}) AS copies (i)"
    session_of = f"'{session[:-SESSION_DIGITS]}' || lpad(to_hex(i), {SESSION_DIGITS}, '0')"
    wait_of = f"'{continuation[:-CONTINUATION_DIGITS]}' || lpad(to_hex(i), {CONTINUATION_DIGITS}, '0')"
    of = f"WHERE session = '{session}'"
    postgres.sql(database, f"""
        INSERT INTO aish.sessions (id, last_seq, created, updated, title, directory, open_turn, served, waiting, to_drive, awaits, model)
            SELECT {session_of}, last_seq, created, updated, title, directory, open_turn, served, waiting, to_drive, awaits, model
            FROM aish.sessions, {copies} WHERE id = '{session}';
        INSERT INTO aish.events (session, seq, turn, time, version, kind, content, data, exact, words, write)
            SELECT {session_of}, seq, turn, time, version, kind, content, replace(data, '{continuation}', {wait_of}), exact, words, write
            FROM {copies}, aish.events {of};
        INSERT INTO aish.waiting_calls (session, position, call, needs_answer, at_client)
            SELECT {session_of}, position, call, needs_answer, at_client FROM aish.waiting_calls, {copies} {of};
        INSERT INTO aish.pending (continuation, session, seq, call, expires, state)
            SELECT {wait_of}, {session_of}, seq, call, expires, state FROM aish.pending, {copies} {of};
        INSERT INTO aish.leases (session, owner, fence, until)
            SELECT {session_of}, owner, fence, until FROM aish.leases, {copies} {of};
        ANALYZE""")
