-- Remove the ticks of a deleted schedule. A statement of its own after schedule_delete.sql, in the same transaction: so it
-- sees the ticks of whoever fired while that one waited, and nobody can fire any more.
-- Writes through the key of schedule_ticks.
DELETE FROM rota.schedule_ticks AS t WHERE t.schedule = %(name)s
