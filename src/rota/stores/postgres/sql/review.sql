-- Take the review of a dead job one step further, if its version and its review still hold.
-- Reads the key of dead_jobs.
UPDATE rota.dead_jobs AS dead
SET review = %(target)s, version = dead.version + 1, reviewed_by = %(by)s, review_notes = %(notes)s,
    reviewed_at = coalesce(%(now)s::timestamptz, now()), reprocessed_as = coalesce(%(new_job)s::uuid, dead.reprocessed_as)
WHERE dead.id = %(id)s AND dead.version = %(version)s AND dead.review = %(origin)s
RETURNING dead.reprocessed_as
