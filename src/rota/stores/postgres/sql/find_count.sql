-- How many jobs a statement of the family of find would list, up to its limit. It stands in place of the name in braces.
-- Reads what that statement reads, by its keys and indexes, but for payloads and results: nobody asks for them here.
SELECT count(*)
FROM ({found}) AS listed
