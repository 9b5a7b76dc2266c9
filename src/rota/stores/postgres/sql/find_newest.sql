-- List jobs by filter, a page at a time, newest first. Ids are made in order of time, so the page key is the id.
-- The text of find stands in place of the name in braces. Reads what it says, and the keys in their order.
{find}
  AND (%(before)s::uuid IS NULL OR id < %(before)s::uuid)
ORDER BY id DESC
LIMIT %(limit)s
