"""A store with a past: a million finished jobs and all that stands beside them, written by SQL in seconds.

Six days and today of finished work, three weeks of dead letters, a backlog, two
weeks of minutes, an audit: of many tasks, queues and tenants, some of them rare.
Nothing is random: the same size gives the same rows.
"""

from __future__ import annotations

from typing import NamedTuple

import psycopg

TASKS = (
    "(ARRAY['send_email', 'render', 'import_row', 'export', 'geocode', 'thumbnail', 'sync', 'invoice', 'notify', "
    "'index_doc'])"
)
QUEUES = "(ARRAY['mail', 'default', 'default', 'reports', 'default', 'media', 'default', 'reports', 'mail', 'search'])"
COMMON, RARE = "send_email", "yearly_report"
"""A task with a third of all jobs, and one with three."""
BUSY_TENANT, QUIET_TENANT = "tenant-1", "tenant-quiet"


class Size(NamedTuple):
    """How much there is."""

    finished: int = 1_000_000
    dead: int = 20_000
    waiting: int = 100_000
    audit: int = 50_000
    minutes: int = 14 * 1440
    """So many minutes back are told of; no store keeps more."""


# UUIDv7, as old as the job and in the order of time.
ID = (
    "(lpad(to_hex((extract(epoch FROM {at}) * 1000)::bigint), 12, '0') || '7' || substr(md5(g::text), 1, 3)"
    " || '8' || substr(md5(g::text || '{salt}'), 4, 15))::uuid"
)

# Which task and which tenant: a third of all jobs is of the first task, and half of those with a tenant of the first.
PLACES = f"""
SELECT s.*, {TASKS}[s.n] AS task, {QUEUES}[s.n] AS queue,
       CASE WHEN g % 5 = 0 THEN NULL WHEN g % 2 = 0 THEN '{BUSY_TENANT}' ELSE 'tenant-' || (g / 7) % 300 END AS tenant,
       CASE WHEN g % 3 = 0 THEN 'site:' || g % 5000 END AS subject,
       CASE WHEN g % 5 = 1 THEN 'key-{{salt}}-' || g END AS key,
       CASE WHEN g % 2 = 0 THEN 'flow-' || g / 4 END AS correlation_id,
       CASE WHEN g % 10 = 3 THEN md5((g / 20)::text)::uuid END AS parent_id,
       CASE WHEN g % 20 = 7 THEN 'ext-{{salt}}-' || g END AS external_id,
       CASE WHEN g % 20 = 9 THEN ARRAY['batch', 'wave-' || g % 100] END AS tags,
       jsonb_build_object('number', g, 'to', 'user-' || g % 10000, 'note', repeat('x', 40 + g % 60)) AS payload
FROM (SELECT g, CASE WHEN g % 3 = 0 THEN 1 ELSE 1 + (g * 7 / 3) % 10 END AS n, {{times}}
      FROM generate_series(1, {{count}}) AS g) AS s
"""

FINISHED = """
INSERT INTO rota.finished_jobs (id, run_at, created_at, claimed_at, finished_at, version, snoozes, priority, attempt,
    max_attempts, losses, session_id, parent_id, state, task, queue, payload, tenant, subject, external_id, key,
    correlation_id, tags, result)
SELECT {id}, p.at - interval '3 seconds', p.at - interval '5 seconds', p.at - interval '1 second', p.at, 3, 0, 100, 1,
    5, 0, md5((g % 40)::text)::uuid, p.parent_id,
    CASE WHEN g % 50 = 17 THEN 'cancelled' WHEN g % 50 = 31 THEN 'partial' ELSE 'completed' END,
    CASE WHEN g IN (11, {count} / 2, {count}) THEN '{rare}' ELSE p.task END, p.queue, p.payload,
    CASE WHEN g IN (12, {count} / 3) THEN '{quiet}' ELSE p.tenant END, p.subject, p.external_id, p.key,
    p.correlation_id, p.tags, '{{"ok": true}}'
FROM ({places}) AS p
"""

DEAD = """
INSERT INTO rota.dead_jobs (id, run_at, created_at, claimed_at, finished_at, version, snoozes, priority, attempt,
    max_attempts, losses, session_id, parent_id, task, queue, payload, tenant, subject, external_id, key,
    correlation_id, tags, error_class, error_message, review, fingerprint, error_type, frame)
SELECT {id}, p.at - interval '3 seconds', p.at - interval '5 seconds', p.at - interval '1 second', p.at, 11, 0, 100, 5,
    5, 0, md5((g % 40)::text)::uuid, p.parent_id, p.task, p.queue, p.payload,
    CASE WHEN g = 12 THEN '{quiet}' ELSE p.tenant END, p.subject, p.external_id, p.key, p.correlation_id, p.tags,
    CASE WHEN g % 4 = 0 THEN 'non_retryable' ELSE 'retryable' END, 'no answer from server ' || g % 7,
    CASE WHEN g % 20 < 12 THEN 'pending_review' WHEN g % 20 < 14 THEN 'acknowledged'
         WHEN g % 20 = 14 THEN 'reprocessing' WHEN g % 20 < 18 THEN 'resolved' ELSE 'discarded' END,
    md5(p.task || g % 8), 'TimeoutError', 'app/mail.py:' || g % 8
FROM ({places}) AS p
"""

ATTEMPTS = """
INSERT INTO rota.failed_attempts (job_id, version, attempt, outcome, error_class, error_type, message, stack,
    session_id, started_at, ended_at)
SELECT d.id, 2 * n, n, CASE n WHEN 5 THEN 'die' ELSE 'retry' END, d.error_class, d.error_type, d.error_message,
    repeat('  File "app/mail.py", line 7, in send' || chr(10), 6), d.session_id, d.claimed_at,
    d.finished_at - interval '1 second' * (5 - n)
FROM rota.dead_jobs AS d, generate_series(1, 5) AS n
"""

WAITING = """
INSERT INTO rota.jobs (id, run_at, created_at, updated_at, claimed_at, version, priority, attempt, state, task, queue,
    payload, tenant, subject, external_id, key, correlation_id, parent_id, tags, gate, parked, session_id, error_class,
    error_message)
SELECT {id}, CASE WHEN g % 10 < 4 THEN p.at ELSE now() + interval '1 second' * g END, p.at, p.at,
    CASE WHEN g % 500 = 1 THEN now() END, 1, CASE WHEN g % 9 = 0 THEN 50 ELSE 100 END,
    CASE WHEN g % 500 = 1 OR g % 40 = 3 THEN 1 ELSE 0 END,
    CASE WHEN g % 500 = 1 THEN 'running' WHEN g % 200 = 2 THEN 'held' ELSE 'pending' END,
    CASE WHEN g = 10 THEN '{rare}' ELSE p.task END, p.queue, p.payload, p.tenant, p.subject, p.external_id, p.key,
    p.correlation_id, p.parent_id, p.tags, CASE WHEN g % 20 = 5 THEN 'serial::' || g % 50 END,
    CASE WHEN g % 100 = 6 THEN 'task' END, CASE WHEN g % 500 = 1 THEN md5((g % 40)::text)::uuid END,
    CASE WHEN g % 40 = 3 THEN 'retryable' END, CASE WHEN g % 40 = 3 THEN 'no answer from server' END
FROM ({places}) AS p
"""

MINUTES = """
INSERT INTO rota.minutes (minute, session_id, queue, task, ending, jobs, wait_sum, run_sum, waits, wait_counts, runs,
    run_counts)
SELECT date_trunc('minute', now()) - interval '1 minute' * m, '00000000-0000-0000-0000-000000000000',
    {queues}[t.n], {tasks}[t.n], e.ending, 60, 30, 90, '{{0,3,7,12,20,28}}', '{{10,20,10,10,5,5}}',
    '{{2,6,9,14,22,31}}', '{{10,20,10,10,5,5}}'
FROM generate_series(0, {minutes}) AS m, generate_series(1, 10) AS t (n),
    unnest(ARRAY['completed', 'failed', 'dead']) WITH ORDINALITY AS e (ending, place)
WHERE e.place = 1 OR (m + t.n) % (e.place * 4) = 0
"""
TENANT_MINUTES = """
INSERT INTO rota.tenant_minutes (minute, session_id, tenant, jobs, faults, run_sum)
SELECT date_trunc('minute', now()) - interval '1 minute' * m, '00000000-0000-0000-0000-000000000000',
    CASE t.n WHEN 0 THEN '' ELSE 'tenant-' || (t.n * (1 + m % 10)) END, 12, 1, 30
FROM generate_series(0, {minutes}) AS m, generate_series(0, 24) AS t (n)
"""
LANE_MINUTES = """
INSERT INTO rota.lane_minutes (minute, session_id, lane, slots, busy)
SELECT date_trunc('minute', now()) - interval '1 minute' * m, '00000000-0000-0000-0000-000000000000', l.lane, 600, 200
FROM generate_series(0, {minutes}) AS m, unnest(ARRAY['fast', 'general']) AS l (lane)
"""

AUDIT = """
INSERT INTO rota.audit (at, actor, action, job_id, about, reason, before, after, correlation_id)
SELECT now() - interval '30 days' + interval '30 days' * g / {count},
    CASE WHEN g % 3 = 0 THEN 'engine' ELSE 'person-' || g % 40 END,
    (ARRAY['retry', 'hold', 'job_dlq_discarded', 'job_dlq_acknowledged', 'cancel'])[1 + g % 5],
    CASE WHEN g % 10 > 0 THEN md5('audited' || g / 3)::uuid END,
    CASE WHEN g % 10 = 0 THEN 'schedule:nightly-' || g % 30 END, 'because', 'dead', 'pending',
    CASE WHEN g % 2 = 0 THEN 'flow-' || g / 4 END
FROM generate_series(1, {count}) AS g
"""

REST = [
    """INSERT INTO rota.sessions (id, host, pid, lanes, tasks, started_at, lease_until, ended_at)
    SELECT md5(g::text)::uuid, 'host-' || g, g, '{"general": 10}', ARRAY['send_email'], now() - interval '1 day',
        now() + CASE WHEN g < 10 THEN interval '1 hour' ELSE interval '-1 minute' END,
        CASE WHEN g >= 10 THEN now() END FROM generate_series(0, 39) AS g""",
    f"""INSERT INTO rota.tasks (name, queue, priority, retry, payload_version, schema, published_at)
    SELECT {TASKS}[n], {QUEUES}[n], 100, '{{}}', '1.0', '{{}}', now() FROM generate_series(1, 10) AS n""",
    """INSERT INTO rota.job_logs (job_id, version, attempt, lines, written, updated_at)
    SELECT id, 2, 1, '[["2026-01-01T00:00:00+00:00", "INFO", "working"]]', 1, finished_at FROM rota.dead_jobs""",
    """INSERT INTO rota.schedule_ticks (schedule, tick, origin, outcome, job_id, at)
    SELECT 'nightly', now() - interval '10 minutes' * g, 'tick', 'enqueued', md5(g::text)::uuid, now()
    FROM generate_series(1, 10000) AS g""",
    """INSERT INTO rota.schedule_ticks (schedule, tick, origin, outcome, job_id, at)
    SELECT 'poll-' || g % 20, now() - interval '1 minute' * g, 'tick', 'enqueued', md5(g::text)::uuid, now()
    FROM generate_series(1, 80000) AS g""",
    """INSERT INTO rota.queues (name, target) VALUES ('mail', 30), ('reports', 600)""",
]


def fill(url: str, size: Size = Size(), *, analyze: bool = True) -> None:  # noqa: B008 - a constant
    """Write all of it, and let the server look at it once as autovacuum would."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        connection.execute(
            "SELECT rota.open_days(now() - make_interval(days => d)) FROM generate_series(0, 8, 4) AS d"
        )
        for statement in _statements(size):
            connection.execute(statement)
        # What the janitor and the roller do by and by.
        while connection.execute("SELECT rota.index_days()").fetchone() != (0,):
            pass
        summing = "SELECT rota.sum_hours(now() - interval '40 minutes', now() - interval '14 days')"
        while connection.execute(summing).fetchone() != (False,):
            pass
        if analyze:
            connection.execute("VACUUM (ANALYZE)")


def _statements(size: Size) -> list[str]:
    def rows(template: str, salt: str, times: str, count: int) -> str:
        places = PLACES.format(salt=salt, times=times, count=count)
        made = ID.format(at="p.at - interval '5 seconds'", salt=salt)
        return template.format(id=made, places=places, count=count, rare=RARE, quiet=QUIET_TENANT)

    def ago(span: str, count: int) -> str:
        return f"now() - interval '{span}' * ({count} - g) / {count} AS at"

    return [
        rows(FINISHED, "done", ago("6.5 days", size.finished), size.finished),
        rows(DEAD, "dead", ago("21 days", size.dead), size.dead),
        ATTEMPTS,
        rows(WAITING, "wait", ago("2 hours", size.waiting), size.waiting),
        MINUTES.format(queues=QUEUES, tasks=TASKS, minutes=size.minutes),
        TENANT_MINUTES.format(minutes=size.minutes),
        LANE_MINUTES.format(minutes=size.minutes),
        AUDIT.format(count=size.audit),
        *REST,
    ]
