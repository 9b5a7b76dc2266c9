-- List unfinished jobs by filter, a page at a time, most urgent first. The last job of the page before is
-- known by the priority that it had and its id, so that the next page begins there whatever became of it.
-- Sorts the unfinished jobs that match; no table of ended jobs is read, because the states are of unfinished ones.
-- The text of find stands in place of the name in braces. Reads jobs, by its key or by index jobs_running where only
-- running ones are asked for.
{find}
  AND (%(before)s::uuid IS NULL OR (priority, id) > (%(before_priority)s::integer, %(before)s::uuid))
ORDER BY priority, id
LIMIT %(limit)s
