"""`@app.schedule(...)`: over a task or given one, with arguments and options; what cannot be is refused at once."""

from __future__ import annotations

import json
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from build import NOON, new_id
from rota import Rota, every
from rota._core.job import Scope
from rota._core.schedule import Misfire, Overlap, job_for
from rota.config import Settings
from rota.errors import PayloadInvalid, ScheduleError
from rota.options import Unique
from rota.task import Task


@pytest.fixture
def app() -> Rota:
    return Rota(settings=Settings.load(url="memory://"))


def job(app: Rota, name: str):
    return job_for(app.schedules[name].spec(), NOON, new_id())


@pytest.mark.req("L25")
def test_a_schedule_is_put_over_a_task_and_leaves_it_a_task(app):
    @app.schedule("30 2 * * *", tz="Europe/Berlin")
    @app.task(queue="slow", retry=2)
    async def nightly() -> None: ...

    spec = app.schedules["nightly"].spec()

    assert isinstance(nightly, Task)
    assert (spec.name, spec.task, spec.timing, spec.tz) == (
        "nightly",
        "nightly",
        "30 2 * * *",
        "Europe/Berlin",
    )
    assert (spec.overlap, spec.misfire, spec.cap, spec.grace) == (Overlap.SKIP, Misfire.LAST, 100, 60.0)
    assert (job(app, "nightly").queue, job(app, "nightly").max_attempts) == ("slow", 2)


def test_over_a_plain_function_it_makes_the_task_too(app):
    @app.schedule(every("5m"))
    def poll() -> int:
        return 1

    assert app.tasks["poll"] is poll
    assert poll() == 1
    assert app.schedules["poll"].spec().timing == "every 5m"


def test_one_task_has_many_schedules_each_with_its_arguments_and_options(app):
    @app.task
    def report(region: str, days: int = 1) -> None: ...

    app.schedule("0 6 * * MON", name="report-eu", jitter="2m", misfire="all", cap=24, grace="5m")(
        report, "eu", days=7
    )
    using = report.using(
        queue="fast", priority=7, tenant="acme", unique=Unique("u", until="finished"), tags=["a"], serial="s"
    )
    app.schedule("@daily", name="report-us", overlap="allow", windows=["0 1 * * SUN for 2h"])(
        using, region="us"
    )
    eu, us = app.schedules["report-eu"].spec(), app.schedules["report-us"].spec()
    job_eu, job_us = job(app, "report-eu"), job(app, "report-us")

    assert (eu.jitter, eu.misfire, eu.overlap, eu.cap, eu.grace) == (120.0, "all", "allow", 24, 300.0)
    assert (us.overlap, us.windows) == ("allow", ("0 1 * * SUN for 2h",))
    assert json.loads(job_eu.payload_json) == {"region": "eu", "days": 7}
    assert json.loads(job_us.payload_json)["region"] == "us"
    assert (job_us.queue, job_us.priority, job_us.tenant, job_us.tags) == ("fast", 7, "acme", ("a",))
    assert (job_us.unique_key, job_us.unique_scope, job_us.gate) == ("u", Scope.FINISHED, "serial:acme:s")


def test_a_key_that_the_task_makes_from_its_arguments_does_not_turn_ticks_into_one_job(app):
    @app.task(key="region")
    def report(region: str) -> None: ...

    app.schedule("@daily")(report, "eu")

    assert job(app, "report").key is None


def test_intervals_are_written_as_all_durations_are(app):
    assert every("1h30m").timing == "every 1h30m"
    assert every(90).timing == every(timedelta(seconds=90)).timing == "every 90s"


def test_maintenance_windows_of_the_deployment_are_added_to_the_schedules_own(app):
    @app.schedule("@hourly", windows=["0 1 * * * for 1h"])
    def poll() -> None: ...

    spec = app.schedules["poll"].spec(("0 3 * * SUN for 2h", "0 1 * * * for 1h"))

    assert spec.windows == ("0 1 * * * for 1h", "0 3 * * SUN for 2h")
    with pytest.raises(
        ScheduleError, match="the setting maintenance cannot be used: the window 'sundays' is not"
    ):
        app.schedules["poll"].spec(("sundays",))


BAD = [
    ({"when": "soon"}, "the schedule 'soon' has 1 fields instead of five"),
    ({"when": 5}, "a schedule's time must be a cron expression"),
    ({"tz": "Berlin"}, "there is no time zone 'Berlin'; did you mean 'Europe/Berlin'?"),
    ({"overlap": "wait"}, "overlap='wait' is not known; choose one of skip, allow."),
    ({"misfire": "some"}, "misfire='some' is not known; choose one of skip, last, all."),
    ({"misfire": "all", "overlap": "skip"}, "Use overlap='allow', or misfire='last'."),
    ({"cap": 0}, "cap 0 is not a whole number from 1 to 1000."),
    ({"cap": True}, "cap True is not a whole number"),
    ({"jitter": "2d"}, "too long; at most a day"),
    ({"jitter": "soon"}, "jitter 'soon' is not understood"),
    ({"when": every("1m"), "jitter": "2m"}, "is longer than the time between two ticks (every 1m)"),
    ({"grace": "30d"}, "too long; at most a week. Use misfire for longer outages."),
    ({"windows": "0 1 * * SUN for 2h"}, "windows must be a list of texts"),
    ({"windows": ["never"]}, "the window 'never' is not understood"),
    ({"windows": [2]}, "windows must be a list of texts such as"),
    ({"windows": None}, "windows must be a list of texts such as"),
    (
        {"tz": ZoneInfo("Europe/Berlin")},
        'tz must be the name of a time zone such as "Europe/Berlin", not zoneinfo',
    ),
    ({"name": ""}, "a schedule's name must not be empty."),
    ({"name": "x" * 2000}, "at most 1000 are allowed"),
]


@pytest.mark.parametrize(("said", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_what_cannot_tick_is_refused_where_it_is_declared(app, said, words):
    with pytest.raises(ScheduleError) as raised:
        app.schedule(said.pop("when", "@daily"), **said)

    assert words in str(raised.value)


def test_arguments_that_do_not_fit_are_named_with_the_schedule_that_gives_them(app):
    @app.task
    def report(region: str) -> None: ...

    app.schedule("@daily", name="report-5")(report, region=5)

    with pytest.raises(
        PayloadInvalid, match=r"schedule 'report-5' at .*:\d+ cannot tick: .*argument 'region'"
    ):
        app.schedules["report-5"].spec()


def test_every_refuses_what_is_too_frequent_or_no_duration():
    for interval in ("100ms", 0, timedelta(0)):
        with pytest.raises(ScheduleError, match="too frequent: a schedule ticks at most once a second"):
            every(interval)
    for interval in ("often", "1.2.3", -5):
        with pytest.raises(ScheduleError):
            every(interval)


def test_two_schedules_of_one_name_are_refused_with_their_places(app):
    @app.task
    def report(region: str) -> None: ...

    app.schedule("@daily")(report, "eu")
    with pytest.raises(
        ScheduleError, match=r"two schedules are named 'report': .*py:\d+ and .*py:\d+\. A schedule is"
    ):
        app.schedule("@hourly")(report, "us")


def test_a_module_that_is_loaded_again_declares_its_schedules_again(app):
    for _ in range(2):
        app.schedule("@daily", name="twice")(app.task(name="twice")(lambda: None))

    assert list(app.schedules) == ["twice"]


@pytest.mark.parametrize(
    ("args", "words"), [((), "missing a required argument: 'region'"), (("eu", 1), "too many")]
)
def test_a_task_that_cannot_be_called_so_is_refused_where_it_is_declared(app, args, words):
    @app.task
    def report(region: str) -> None: ...

    with pytest.raises(ScheduleError) as raised:
        app.schedule("@daily")(report, *args)

    assert f"schedule 'report' cannot call report: {words}" in str(raised.value)
    assert "app.schedule(...)(report, ...)" in str(raised.value)
    assert app.schedules == {}


def test_arguments_of_the_wrong_kind_are_refused_when_a_worker_starts(app):
    @app.task
    def report(days: int) -> None: ...

    app.schedule("@daily")(report, "many")

    with pytest.raises(PayloadInvalid, match="days"):
        app.schedules["report"].spec()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"key": "k"}, "Each tick is one job already"),
        ({"delay": 5}, "use jitter= to spread ticks"),
        ({"at": NOON}, "The schedule says when"),
        ({"tx": object()}, "leave tx= out"),
        ({"parent": new_id()}, "leave parent= out"),
    ],
)
def test_options_that_make_no_sense_for_ticks_are_refused(app, options, words):
    @app.task
    def report() -> None: ...

    with pytest.raises(ScheduleError) as raised:
        app.schedule("@daily")(report.using(**options))

    assert words in str(raised.value)


def test_only_a_task_or_a_function_can_be_scheduled(app):
    with pytest.raises(
        ScheduleError, match=r"needs a task, not 'report'\. Put it over @app\.task, or call it"
    ):
        app.schedule("@daily")("report")
