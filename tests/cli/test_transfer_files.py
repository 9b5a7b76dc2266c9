"""The files of `rota export`: whole or not there, and for nobody else's eyes."""

from __future__ import annotations

import stat

from rota.admin import transfers
from rota.cli import exits


def test_files_that_are_not_there_or_would_be_overwritten_are_refused(rota, jobs, tmp_path):
    jobs.add()
    (tmp_path / "old.jsonl").write_text("mine")
    over = rota("export", "-o", "old.jsonl")

    assert rota("import", "nofile.jsonl").code == exits.USAGE
    assert over.code == exits.USAGE
    assert "'old.jsonl' exists already" in over.err
    assert (tmp_path / "old.jsonl").read_text() == "mine"
    assert rota("export", "-o", "no/such/dir.jsonl").code == exits.USAGE


def test_a_file_is_whole_or_not_there_and_for_its_owner_only(rota, jobs, tmp_path, monkeypatch):
    jobs.add(times=2)
    rota("export", "-o", "jobs.jsonl")

    async def broken(self, job, *, reveal):
        raise OSError("the cable")

    monkeypatch.setattr(transfers.Transfers, "_line_of", broken)
    assert rota("export", "-o", "half.jsonl").code == exits.PROBLEMS
    assert [path.name for path in tmp_path.glob("*.jsonl*")] == ["jobs.jsonl"]
    assert stat.S_IMODE((tmp_path / "jobs.jsonl").stat().st_mode) == 0o600


def test_a_file_that_somebody_left_there_and_can_read_gets_no_secrets(rota, jobs, tmp_path):
    jobs.add(payload={"password": "hunter2"})
    (tmp_path / "jobs.jsonl.part").write_text("mine")
    rota("export", "--reveal", "-o", "jobs.jsonl")

    assert (tmp_path / "jobs.jsonl.part").read_text() == "mine"
    assert stat.S_IMODE((tmp_path / "jobs.jsonl").stat().st_mode) == 0o600


def test_an_empty_file_is_nothing(rota, jobs):
    assert rota("import", "-").code == exits.NOTHING
