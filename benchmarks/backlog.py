"""SQL that fills Rota's tables where running a million jobs would take too long."""

# Ids are UUIDv7: these are as old as a backlog is, and in the order of their time.
OLD_ID = (
    "(lpad(to_hex((extract(epoch from now()) * 1000)::bigint - 3000000 + g), 12, '0') "
    "|| '7' || substr(md5(g::text), 1, 3) || '8' || substr(md5(g::text), 4, 15))::uuid"
)
FINISHED = (
    "insert into rota.finished_jobs(id, run_at, created_at, claimed_at, finished_at, version, snoozes, priority, "
    "attempt, max_attempts, losses, state, task, queue, payload) select "
    + OLD_ID
    + ", now(), now(), now(), now(), "
    "3, 0, 100, 1, 5, 0, 'completed', 'noop', 'default', '{\"t0\": 0.0}' from generate_series(1, @) g"
)
SCHEDULED = (
    "insert into rota.jobs(id, run_at, created_at, updated_at, task, payload) select " + OLD_ID + ", now() + "
    "interval '1 day' + g * interval '1 ms', now(), now(), 'noop', '{\"t0\": 0.0}' from generate_series(1, @) g"
)


def finished_rows(count: int) -> str:
    return FINISHED.replace("@", str(count))


def scheduled_rows(count: int) -> str:
    return SCHEDULED.replace("@", str(count))
