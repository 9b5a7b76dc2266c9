-- Whether nothing is left in a day of finished jobs. Reads the partition up to the
-- first job that is there.
SELECT NOT EXISTS (SELECT FROM rota.{day})
