"""`rota jobs list FILTER...`, and the verbs by filter, take the words of the filter language beside their options."""

from __future__ import annotations

from uuid import UUID

from rota._core.job import State

NOBODY = UUID(int=1)


def ids(said) -> list[str]:
    return [line.split("\t")[0] for line in said.lines]


def test_words_narrow_the_list_alone_and_with_options(rota, jobs):
    jobs.dead("greet")
    mine = jobs.add("greet", queue="mail", payload={"user": {"id": 7}}, subject="order 7", priority=10)
    jobs.add("greet", queue="mail", payload={"user": {"id": 8}})
    jobs.add("report", payload={"user": {"id": 7}})

    for words in (
        ("state:pending", "queue:mail", "args.user.id:7"),
        ("state:pending queue:mail args.user.id:7",),
        ("args.user.id:7", "--task", "greet"),
        ("subject:order 7",),
        ('subject:"order 7"',),
        ("priority:<50",),
        (f"id:{mine}", "created>1h"),
        ("task:greet", "order:priority", "--limit", "1"),
    ):
        assert ids(rota("jobs", "list", *words)) == [str(mine)], words


def test_a_wrong_word_is_a_usage_error_that_says_what_to_write(rota, jobs):
    said = rota("jobs", "list", "status:dead")
    twice = rota("jobs", "list", "queue:mail", "--queue", "slow")

    assert (said.code, twice.code) == (2, 2)
    assert "there is no field 'status'. Did you mean state:dead?" in said.err
    assert "with another value; say it once." in twice.err


def test_a_verb_by_words_acts_on_what_matches_and_on_nothing_else(rota, jobs):
    mine, other = jobs.dead("greet", payload={"n": 1}), jobs.dead("greet", payload={"n": 2})

    planned = rota("jobs", "retry", "args.n:1", "--dry-run")
    said = rota("jobs", "retry", "args.n:1", "order:oldest", "--yes")

    assert (planned.code, planned.out) == (0, "1\n")
    assert (said.code, said.err) == (0, "retry: 1 job done.\n")
    assert (jobs.get(mine).state, jobs.get(other).state) == (State.PENDING, State.DEAD)


def test_an_order_alone_is_not_a_filter(rota, jobs):
    said = rota("jobs", "delete", "order:oldest", "--yes")

    assert said.code == 2
    assert "say which job to delete: an id, a filter" in said.err


def test_ids_and_words_together_are_refused_and_a_wrong_id_is_told_as_one(rota, jobs):
    both = rota("jobs", "retry", NOBODY, "task:greet")
    wrong = rota("jobs", "retry", "greet")

    assert (both.code, wrong.code) == (2, 2)
    assert "give ids or a filter, not both." in both.err
    assert "'greet' is not a job id" in wrong.err
