-- Leave the turn to purge to others.
-- Reads the key of turns.
DELETE FROM rota.turns AS turn WHERE turn.chore = 'prune' AND turn.holder = %(holder)s
