-- What became of the ticks of a schedule since a moment, counted by day (UTC): for those that tick too often to be shown
-- one by one. `late`: so many seconds after its time a tick was late. Of the newest `limit` ticks only: what ticks each
-- second has millions.
--
-- Where a job is now is asked table by table, and no further once it is found. Most end within two days of their tick,
-- which is two or three days of finished_jobs; whoever took longer is looked for last, in all days since.
-- Reads the key of schedule_ticks backwards, then the jobs' tables and the archive by id.
SELECT (seen.tick AT TIME ZONE 'UTC')::date, seen.origin, seen.outcome, seen.late, seen.state,
       count(*)::integer, max(seen.tick)
FROM (
    SELECT t.tick, t.origin, t.outcome,
           t.origin = 'tick' AND t.at > t.tick + make_interval(secs => %(late)s) AS late,
           CASE WHEN t.job_id IS NOT NULL THEN coalesce(
               (SELECT f.state FROM rota.finished_jobs AS f
                WHERE f.id = t.job_id AND f.finished_at >= t.at AND f.finished_at < t.at + interval '2 days'),
               (SELECT 'dead' FROM rota.dead_jobs AS d WHERE d.id = t.job_id),
               (SELECT j.state FROM rota.jobs AS j WHERE j.id = t.job_id),
               (SELECT a.state FROM rota.archived_jobs AS a WHERE a.id = t.job_id AND a.archived_at >= t.at LIMIT 1),
               (SELECT f.state FROM rota.finished_jobs AS f WHERE f.id = t.job_id LIMIT 1)) END AS state
    FROM (SELECT tick, origin, outcome, job_id, at FROM rota.schedule_ticks
          WHERE schedule = %(schedule)s AND tick >= %(since)s
          ORDER BY tick DESC LIMIT %(limit)s) AS t) AS seen
GROUP BY 1, 2, 3, 4, 5
ORDER BY 1
