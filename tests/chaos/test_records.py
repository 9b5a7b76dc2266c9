"""The two records outside the system: journal and effect log."""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext

import pytest

from build import a_stored_job
from chaos.effects import Effects, read_effects
from chaos.journal import Entry, Journal, read_journals
from rota.current import RunningJob, running


@pytest.fixture
def in_a_job():
    job = a_stored_job()
    token = running.set(RunningJob(job))
    yield job
    running.reset(token)


def test_a_journal_tells_what_was_acknowledged_and_what_was_not(tmp_path):
    journal = Journal(tmp_path / "one")
    journal.intend(["a", "b", "c", "d"])
    journal.ack({"a": "job-a"})
    journal.refuse(["b"], OSError("cut"))
    journal.refuse(["b"], OSError("cut again"))
    journal.withdraw(["d"])
    journal.close()

    assert read_journals([tmp_path / "one"]) == [
        Entry("a", "job-a"),
        Entry("b", None, 2),
        Entry("c", None),
        Entry("d", None, withdrawn=True),
    ]


def test_a_retry_that_is_acknowledged_counts_whatever_came_before(tmp_path):
    journal = Journal(tmp_path / "one")
    journal.intend(["a"])
    journal.refuse(["a"], OSError("cut"))
    journal.ack({"a": "job-a"})
    journal.close()

    assert read_journals([tmp_path / "one"]) == [Entry("a", "job-a", 1)]


@pytest.mark.parametrize(
    ("error", "how"),
    [(None, "returned"), (ValueError("no"), "ValueError"), (asyncio.CancelledError(), "cancelled")],
)
def test_an_effect_has_its_start_its_end_and_how_it_ended(tmp_path, in_a_job, error, how):
    log = Effects(tmp_path / "effects")
    with pytest.raises(type(error)) if error else nullcontext(), log.recorded("a", group="g"):
        if error is not None:
            raise error
    log.close()

    [effect] = read_effects(tmp_path / "effects")

    assert effect[:4] == ("a", str(in_a_job.id), in_a_job.version, in_a_job.attempt)
    assert (effect.how, effect.group) == (how, "g")
    assert effect.start <= effect.end


def test_a_handler_whose_process_died_has_no_end(tmp_path, in_a_job):
    log = Effects(tmp_path / "effects")
    log._write("start", "a", group=None)
    log.close()

    [effect] = read_effects(tmp_path / "effects")

    assert (effect.end, effect.how) == (None, None)


def test_a_line_that_is_still_being_written_is_not_read(tmp_path):
    line = json.dumps(
        {
            "what": "start",
            "key": "a",
            "job": "j",
            "fence": 2,
            "attempt": 1,
            "pid": 1,
            "monotonic": 1.0,
            "group": None,
        }
    )
    (tmp_path / "effects").write_text(f"{line}\n{line[:20]}")

    assert len(read_effects(tmp_path / "effects")) == 1


def test_what_a_killed_process_wrote_in_part_does_not_spoil_the_line_behind_it(tmp_path, in_a_job):
    log = Effects(tmp_path / "effects")
    (tmp_path / "effects").write_text('{"what": "start", "key": "torn", "job": "j", "fe')
    with log.recorded("a"):
        pass
    log.close()

    assert [(effect.key, effect.how) for effect in read_effects(tmp_path / "effects")] == [("a", "returned")]
