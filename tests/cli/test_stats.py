"""`rota stats`, `rota queues`, `rota tenants`: is it keeping up, and for whom?"""

from __future__ import annotations

import json

import psycopg
import pytest

from build import a_session, new_id
from rota._core.numbers import Ending, LaneTotal, Minute, TenantTotal, Total, bucket, minute_of
from rota._core.queue import Queue
from rota.cli import exits


@pytest.fixture
def worked(jobs):
    """Somebody sent 98 mails, and two attempts failed; three wait now."""

    async def fill(store) -> None:
        now = await store.now()
        totals = [
            Total(
                "mail",
                "send",
                Ending.COMPLETED,
                98,
                9.8,
                49.0,
                {bucket(0.1): 98},
                {bucket(0.5): 97, bucket(8.0): 1},
            ),
            Total("mail", "send", Ending.FAILED, 2, 0.2, 1.0, {bucket(0.1): 2}, {bucket(0.5): 2}),
        ]
        lanes = [LaneTotal("fast", 100, 25)]
        tenants = [TenantTotal("acme", 60, 2, 30.0), TenantTotal("", 40, 0, 20.0)]
        await store.note_minutes(new_id(), [Minute(minute_of(now), totals, tenants, lanes)])
        await a_session(store, lease=600)

    jobs.do(fill)
    jobs.add("send", times=3, queue="mail")
    with psycopg.connect(jobs.url, autocommit=True) as connection:
        connection.execute("UPDATE rota.jobs SET run_at = now() - interval '2 minutes'")
    return jobs


@pytest.mark.req("L31")
def test_stats_tell_rates_and_percentiles_by_task_and_how_full_the_lanes_are(rota, worked):
    said = rota("stats")

    assert said.code == exits.DONE
    [line] = said.lines
    name, attempts, done, failed, dead, errors, wait50, *_, run99 = line.split("\t")
    assert (name, attempts, done, failed, dead, errors) == ("send", "100", "98", "2", "0", "2.0 %")
    assert wait50.endswith("ms")
    assert run99 != ""
    assert "pending 3, running 0, dead 0; oldest due: 2m" in said.err
    assert "lane fast: 25 % of its slots busy." in said.err


@pytest.mark.req("L14")
def test_scripts_get_the_stats_of_the_queue(rota, worked):
    said = json.loads(rota("stats", "--json").out)

    assert (said["pending"], said["processing"], said["failed"]) == (3, 0, 2)
    assert 1.9 < said["oldest_pending_minutes"] < 3
    assert said["tasks"]["send"]["error_rate"] == 0.02
    assert 0.4 < said["queues"]["mail"]["run"]["p50"] < 0.6
    assert 7 < said["tasks"]["send"]["run"]["p99"] < 9.5 or said["tasks"]["send"]["run"]["p99"] < 0.7
    assert said["lanes"] == {"fast": 0.25}
    assert said["unknown"] == {}


def test_queues_say_what_waits_and_who_serves_it(rota, worked):
    said = rota("queues")

    [line] = said.lines
    queue, pending, running, dead, oldest, slots, rate, wait, target, errors = line.split("\t")
    assert (queue, pending, running, dead, slots, errors) == ("mail", "3", "0", "0", "5", "2.0 %")
    assert oldest.startswith("2m")
    assert rate == "1.6"
    assert (wait != "", target) == (True, "")


@pytest.mark.parametrize("noun", ["queues", "tenants"])
def test_the_verb_that_other_nouns_have_is_understood(rota, worked, noun):
    first = [rota(*words).out.splitlines()[0].split("\t")[0] for words in ((noun,), (noun, "list"))]

    assert first[0] == first[1] != ""
    assert "'list'" in rota(noun, "lst").err


def test_a_target_is_measured_against_what_waits(rota, worked):
    worked.do(lambda store: store.publish_queues([Queue("mail", target="30s")]))
    late = json.loads(rota("queues", "--json").out)[0]
    worked.do(lambda store: store.publish_queues([Queue("mail", target="1h")]))
    well = json.loads(rota("queues", "--json").out)[0]

    assert (late["target"], late["late"]) == (30.0, True)
    assert (well["target"], well["late"]) == (3600.0, False)
    assert rota("queues").lines[0].split("\t")[-2] == "1h ok"


@pytest.mark.req("V24")
def test_tenants_are_listed_by_what_was_done_for_them(rota, worked):
    lines = [line.split("\t") for line in rota("tenants").lines]

    assert [(line[0], line[1], line[3]) for line in lines] == [("acme", "60", "2"), ("-", "40", "0")]


@pytest.mark.scenario(20)
def test_what_cannot_be_read_is_unknown_and_never_zero(rota, worked):
    with psycopg.connect(worked.url, autocommit=True) as connection:
        connection.execute("DROP TABLE rota.tenant_minutes CASCADE")  # the figures cannot be read any more

    whole = json.loads(rota("stats", "--json").out)
    assert (whole["pending"], whole["tasks"], whole["lanes"], whole["failed"]) == (3, None, None, None)
    assert "figures" in whole["unknown"]
    said = rota("queues")
    assert said.lines[0].split("\t")[-4:] == ["unknown", "unknown", "", "unknown"]
    assert "figures: unknown" in said.err


@pytest.mark.parametrize("command", ["stats", "queues", "tenants", "top"])
@pytest.mark.parametrize("since", ["200d", "0"])
def test_a_stretch_of_which_no_numbers_are_kept_is_refused(rota, jobs, command, since):
    said = rota(command, "--since", since)

    assert said.code == exits.USAGE
    assert f"'{since}' is no time that numbers are kept of: give from a second to 90 days" in said.err


def test_before_anything_was_done_nothing_matches(rota, jobs):
    assert rota("queues").code == exits.NOTHING
    assert rota("tenants").code == exits.NOTHING
    assert rota("stats").code == exits.DONE


@pytest.mark.req("L40")
def test_the_task_whose_payloads_fill_the_store_is_named_with_its_largest_job(rota, jobs):
    jobs.add("mail", times=2, payload={"to": "ann"})
    large = jobs.add("export", payload={"rows": [str(number * 7919) for number in range(5000)]})
    said = rota("stats", "--payloads")

    first, second = (line.split("\t") for line in said.lines)
    assert (first[0], first[1], first[4]) == ("export", "1", str(large))
    assert int(first[3]) > 10_240
    assert second[:2] == ["mail", "2"]
    assert "Let it pass a reference" in said.err
    assert f"rota jobs show {large}" in said.err


def test_no_unfinished_job_has_no_payload(rota, jobs):
    assert rota("stats", "--payloads").code == exits.NOTHING
