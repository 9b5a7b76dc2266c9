-- Let old ticks go, but for the newest of each schedule, and note up to where: of what is no longer known nothing may be
-- enqueued again. One schedule's row is held from the note to the end, so that nobody fires between the two.
-- Reads the key of schedule_ticks, schedule by schedule.
WITH edge AS (
    SELECT s.name, old.tick AS upto
    FROM rota.schedules AS s,
         LATERAL (SELECT t.tick FROM rota.schedule_ticks AS t WHERE t.schedule = s.name
                  ORDER BY t.tick DESC OFFSET %(kept)s LIMIT 1) AS newest,
         LATERAL (SELECT t.tick FROM rota.schedule_ticks AS t WHERE t.schedule = s.name
                  AND t.tick <= least(newest.tick, coalesce(%(now)s::timestamptz, now()) - make_interval(secs => %(keep)s))
                  ORDER BY t.tick DESC LIMIT 1) AS old
    FOR UPDATE OF s SKIP LOCKED
), noted AS (
    UPDATE rota.schedules AS s SET forgotten_until = greatest(s.forgotten_until, edge.upto)
    FROM edge WHERE s.name = edge.name
    RETURNING s.name, edge.upto
), gone AS (
    DELETE FROM rota.schedule_ticks AS t USING noted WHERE t.schedule = noted.name AND t.tick <= noted.upto
    RETURNING 1
)
SELECT count(*) FROM gone
