-- Where the review of a dead job stands, for one whose change did not land.
-- Reads the key of dead_jobs.
SELECT dead.version, dead.review, dead.reviewed_by, dead.review_notes, dead.reprocessed_as
FROM rota.dead_jobs AS dead WHERE dead.id = %(id)s
