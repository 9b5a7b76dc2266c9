"""The page of one job: how it stands, its life, why it does not run, and its tabs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from urllib.parse import quote
from uuid import UUID, uuid4

import pytest

from build import a_job, a_session, claim, completed
from page_kit import PageSite, followed, paged, words
from rota._core.actions import AuditFilter
from rota._core.failure import ErrorClass, Failure
from rota._core.ids import public_id
from rota._core.job import State
from rota._core.job_log import LogTail, kept_line
from rota._core.numbers import Minute, Total, bucket
from rota._core.outcome import Raised, decide
from rota._core.retry import Retry
from rota._core.task_spec import TaskSpec
from rota.admin import Admin
from rota.stores.memory import MemoryStore

XSS = "<script>alert(1)</script>"
HUGE = 9_007_199_254_740_993
STACK = (
    "Traceback (most recent call last):\n"
    '  File "/srv/shop/bank.py", line 3, in ask\n    connect(password="hunter2")\n'
    "TimeoutError: no answer\n\n"
    "The above exception was the direct cause of the following exception:\n\n"
    "Traceback (most recent call last):\n"
    '  File "/usr/lib/python3.12/site-packages/http.py", line 3, in run\n    go()\n'
    '  File "/srv/shop/mail.py", line 7, in send\n    post(to)\n'
    "ValueError: no such address\n"
)
TABS = ("attempts", "arguments", "result", "logs", "events", "related", "raw")


@pytest.fixture
async def site() -> AsyncIterator[PageSite]:
    async with paged(MemoryStore()) as site:
        await site.store.publish([TaskSpec("mail", queue="post")])
        yield site


async def made(site: PageSite, args: dict | None = None, **options) -> UUID:
    job = a_job("mail", args if args is not None else {"to": "ann"}, **({"queue": "post"} | options))
    await site.store.enqueue([job])
    return job.id


async def running(site: PageSite, args: dict | None = None, **options):
    job_id = await made(site, args, **options)
    jobs = await claim(site.store, await a_session(site.store, "web-1", lease=1e6))
    return next(job for job in jobs if job.id == job_id)


async def dead(site: PageSite, args: dict | None = None, message: str = "no such address", **options) -> UUID:
    job = await running(site, args, **options)
    failure = Failure(ErrorClass.NON_RETRYABLE, "ValueError", message, STACK)
    now = await site.store.now()
    await site.store.settle([decide(job, Raised(failure), retry=Retry(), now=now)])
    return job.id


async def shown(site: PageSite, job_id: UUID, role: str = "viewer", tenant: str | None = None, **query: str):
    return await (await site.visitor(role, tenant)).get(at(job_id), params=query)


def at(job_id: UUID) -> str:
    return f"/jobs/{quote(public_id(job_id))}"


async def test_the_page_says_what_it_is_and_where_it_stands(site):
    job_id = await made(
        site, tenant="red", subject="order:7", tags=("import",), priority=50, created_by="shop"
    )
    page = await shown(site, job_id)

    assert page.status_code == 200
    for said in (
        "mail",
        "pending",
        public_id(job_id),
        "post",
        "red",
        "order:7",
        "import",
        "50 runs earlier",
        "shop",
    ):
        assert said in words(page), said
    assert f"topics=job%3A{job_id}" in page.text  # what makes it look again


@pytest.mark.parametrize("tab", TABS)
async def test_every_tab_stands_for_a_job_in_every_state(site, tab):
    held = await made(site, held=True)
    pending = await made(site, delay=600)
    died = await dead(site)
    runs = (await running(site)).id
    done = await running(site)
    await site.store.settle([completed(done, {"sum": 1})])
    for job_id in (held, pending, died, runs, done.id):
        page = await shown(site, job_id, "manager", tab=tab)
        assert page.status_code == 200
        assert 'aria-current="page">' + tab.capitalize() in page.text


async def test_an_unknown_tab_shows_the_first_one(site):
    page = await shown(site, await made(site), tab="nonsense")

    assert 'aria-current="page">Arguments' in page.text


async def test_a_job_that_waits_says_why_and_what_helps(site):
    page = await shown(site, await made(site, held=True))

    assert "Why is it not running?" in words(page)
    assert "rota jobs release" in words(page)
    assert "Why is it not running?" not in words(await shown(site, await dead(site)))


async def test_a_dead_job_shows_its_trace_with_its_own_code_and_its_cause(site):
    page = await shown(site, await dead(site))
    said = words(page)

    assert "In your code: shop/mail.py:7 in send" in said
    assert "caused by TimeoutError: no answer" in said
    assert said.index("Trace of ValueError") < said.index("caused by TimeoutError")
    assert "web-1:4711" in said
    assert '<span class="ours">  File &#34;/srv/shop/mail.py&#34;' in page.text
    assert "<span>  File &#34;/usr/lib" in page.text
    assert "hunter2" not in page.text


async def test_its_life_is_a_strip_that_is_told_in_words(site):
    page = await shown(site, await dead(site))

    assert '<rect class="bad"' in page.text
    assert "attempt 1 failed: ValueError" in words(page)


async def test_big_integers_are_exact_in_arguments_result_and_raw(site):
    job = await running(site, {"number": HUGE, "price": 1.50, "rows": [{"id": HUGE + 1}]})
    await site.store.settle([completed(job, {"sum_cents": HUGE + 2})])

    assert str(HUGE) in words(await shown(site, job.id, tab="arguments"))
    assert str(HUGE + 1) in words(await shown(site, job.id, tab="arguments"))
    assert str(HUGE + 2) in words(await shown(site, job.id, tab="result"))
    assert str(HUGE) in words(await shown(site, job.id, tab="raw"))
    assert f"number:={HUGE}" in words(await shown(site, job.id))


async def test_secrets_are_hidden_on_every_tab_and_marked(site):
    job_id = await dead(
        site,
        {"to": "ann", "api_token": "hunter2", "user": {"password": "hunter2"}},
        "login failed: password=hunter2",
    )
    for role in ("viewer", "manager"):
        for tab in TABS:
            page = await shown(site, job_id, role, tab=tab)
            assert "hunter2" not in page.text, tab
    page = await shown(site, job_id, tab="arguments")
    assert "2 parts hidden" in words(page)
    assert "Reveal" not in words(page)


async def test_a_manager_may_reveal_and_the_audit_notes_it(site):
    job_id = await made(site, {"api_token": "hunter2"})
    manager = await site.visitor("manager")
    assert "Reveal" in words(await manager.get(f"{at(job_id)}?tab=arguments"))

    page = await manager.post(f"{at(job_id)}/reveal", data={"tab": "arguments"})

    assert "hunter2" in words(page)
    assert "no-store" in page.headers["cache-control"]
    assert "hx-sse:connect" not in page.text
    [row] = await Admin(site.store, actor="tests").trail(AuditFilter(action="reveal"))
    assert row.job_id == job_id
    assert row.actor.startswith("manager of all")
    assert (await (await site.visitor("operator")).post(f"{at(job_id)}/reveal")).status_code == 403


async def test_a_viewer_has_no_buttons_and_is_refused(site):
    job_id = await dead(site)
    viewer = await site.visitor("viewer")
    main = (await viewer.get(at(job_id))).text.partition("<main")[2].partition("</main>")[0]

    assert "<form" not in main
    assert "Retry" not in main
    for verb in (
        "retry",
        "cancel",
        "hold",
        "release",
        "delete",
        "edit",
        "move",
        "priority/7",
        "reveal",
        "force",
    ):
        assert (await viewer.post(f"{at(job_id)}/{verb}")).status_code == 403, verb
    assert (await viewer.get(f"{at(job_id)}/edit")).status_code == 403
    assert "Delete" not in words(await shown(site, job_id, "operator"))
    assert "Delete" in words(await shown(site, job_id, "manager"))


async def test_the_job_of_another_tenant_is_not_there(site):
    job_id = await dead(site, tenant="red")
    blue = await site.visitor("manager", "blue")

    for tab in TABS:
        page = await blue.get(at(job_id), params={"tab": tab})
        assert page.status_code == 404
        assert "red" not in words(page).split()
        assert "No job has this id" in words(page)
    for verb in (
        "retry",
        "cancel",
        "hold",
        "release",
        "delete",
        "edit",
        "move",
        "priority/7",
        "reveal",
        "force",
    ):
        assert (await blue.post(f"{at(job_id)}/{verb}", data={"queue": "x"})).status_code == 404, verb
    assert (await blue.get(f"{at(job_id)}/edit")).status_code == 404
    assert (await shown(site, job_id, "viewer", "red")).status_code == 200


@pytest.mark.parametrize(
    ("job_id", "said"),
    [("0197f3c2-0000-7000-8000-000000000000", "retention removed it"), ("nonsense", "is not a job id")],
)
async def test_a_job_that_is_not_there_gets_a_calm_page(site, job_id, said):
    page = await (await site.visitor("viewer")).get(f"/jobs/{job_id}")

    assert page.status_code == 404
    assert said in words(page)


async def test_strings_that_would_be_code_are_text_on_every_tab(site):
    await site.store.publish([TaskSpec(XSS, queue=XSS)])
    job = a_job(
        XSS,
        {XSS: XSS, "list": [XSS, {XSS: [XSS]}]},
        queue=XSS,
        tenant=XSS,
        subject=XSS,
        tags=(XSS,),
        correlation_id=XSS,
        key=XSS,
        created_by=XSS,
        category=XSS,
        external_id=XSS,
        unique_key=XSS,
    )
    await site.store.enqueue([job])
    [mine] = await claim(site.store, await a_session(site.store, XSS, lease=1e6))
    lines = (kept_line(mine.created_at, 30, XSS),)
    await site.store.keep_logs([LogTail(mine.id, mine.version, 1, lines, 1, XSS)])
    failure = Failure(
        ErrorClass.NON_RETRYABLE, XSS, XSS, f'Traceback\n  File "{XSS}", line 1, in {XSS}\n{XSS}\n'
    )
    await site.store.settle([decide(mine, Raised(failure), retry=Retry(), now=mine.created_at)])
    await Admin(site.store, actor=XSS).acknowledge(job.id, reason=XSS)
    manager = await site.visitor("manager")
    for path in (*(f"?tab={tab}" for tab in TABS), "/edit", "/edit?as=clone"):
        page = await manager.get(at(job.id) + path)
        assert page.status_code == 200, path
        assert XSS not in page.text, path
        assert "&lt;script&gt;" in page.text, path


async def test_logs_are_shown_newest_first_and_by_level(site):
    job = await running(site)
    now = job.created_at
    lines = (kept_line(now, 20, "begun"), kept_line(now, 30, "odd"), kept_line(now, 40, "broken"))
    await site.store.keep_logs([LogTail(job.id, job.version, 1, lines, 70, "s3://logs/1")])

    said = words(await shown(site, job.id, tab="logs"))
    assert said.index("broken") < said.index("odd") < said.index("begun")
    assert "70 lines written; the newest 50 are kept here, all of it: s3://logs/1" in said
    narrowed = words(await shown(site, job.id, tab="logs", level="warning"))
    assert "odd" in narrowed
    assert "begun" not in narrowed


async def test_events_tell_who_did_what_and_why(site):
    job_id = await made(site)
    await Admin(site.store, actor="jana").hold(job_id, reason="typo in the headline")

    said = words(await shown(site, job_id, tab="events"))
    assert "jana hold pending held typo in the headline" in said


async def test_related_jobs_are_parent_children_and_who_does_its_work_again(site):
    parent = await made(site)
    mine = await dead(site, parent_id=parent)
    child = await made(site, parent_id=mine)
    again = (await Admin(site.store, actor="jana").reprocess(mine)).new_job

    said = words(await shown(site, mine, tab="related"))
    assert "does its work again" in said
    assert "its parent" in said
    assert "enqueued by it" in said
    page = await shown(site, mine, tab="related")
    for other in (parent, child, again):
        assert at(other) in page.text
    assert "its work is done again here" in words(await shown(site, again, tab="related"))


async def test_a_run_stands_among_the_others_of_its_task(site):
    job = await running(site)
    await site.store.settle([completed(job)])
    now = await site.store.now()
    runs = {bucket(0.5): 30, bucket(60.0): 10}
    done = Minute(now.replace(second=0, microsecond=0), [Total("post", "mail", "completed", 40, runs=runs)])
    await site.store.note_minutes(job.session_id, [done])

    said = words(await shown(site, job.id))
    assert "This run among others 40 runs in 24 h" in said
    assert "100 % of the others took longer" in said
    scoped = await running(site, tenant="red")
    assert "among others" not in words(await shown(site, scoped.id, "viewer", "red"))


async def test_the_work_can_be_copied_in_three_languages(site):
    said = words(await shown(site, await made(site, {"to": "ann", "copies": 2})))

    assert "await app.tasks['mail'].using(queue='post').enqueue(to='ann', copies=2)" in said
    assert "rota enqueue mail to=ann copies:=2 --queue post" in said
    assert "curl -X POST http://jobs.example.org/api/v1/jobs" in said


async def test_priority_and_queue_are_changed_and_the_priority_can_be_undone(site):
    job_id = await made(site)
    client = await site.visitor("operator")

    page = await followed(client, f"{at(job_id)}/move", priority="7", queue="post")
    assert "has priority 7 now, 100 before" in words(page)
    undo = page.text.partition('class="notice good"')[2].partition('action="')[2].partition('"')[0]
    assert "has priority 100 now, 7 before" in words(await followed(client, undo))
    page = await followed(client, f"{at(job_id)}/move", priority="100", queue="slow")
    assert "from queue post to slow" in words(page)
    assert "Nothing was to be changed" in words(await followed(client, f"{at(job_id)}/move", queue="slow"))
    assert (await client.post(f"{at(job_id)}/move", data={"priority": "soon"})).status_code == 422
    assert (await client.post(f"{at(job_id)}/priority/99999")).status_code == 422


async def test_a_running_job_whose_worker_does_not_answer_is_cancelled_by_force(site):
    job = await running(site)
    client = await site.visitor("operator")

    page = await followed(client, f"{at(job.id)}/cancel")
    assert "is asked to stop it" in words(page)
    assert "cancelling" in words(page)
    page = await followed(client, f"{at(job.id)}/force")
    assert "is cancelled" in words(page)
    assert "Cancel by force" not in words(page)


async def test_an_action_that_is_refused_says_what_to_do_instead(site):
    job = await running(site)
    answer = await (await site.visitor("manager")).post(f"{at(job.id)}/delete")

    assert answer.status_code == 409
    assert "Cancel it first, then delete it." in words(answer)


async def test_an_archived_job_tells_what_is_left_of_it(site, monkeypatch):
    from rota._core.retention import ArchivedJob

    now = await site.store.now()
    left = ArchivedJob(
        uuid4(), State.DEAD, "mail", "post", None, None, "order:7", None, None, None, None, 3, 0, now, now, now,
        1.5, 2.5, "transient", None, None,
    )  # fmt: skip

    async def archived(_ids):
        return [left]

    monkeypatch.setattr(site.store, "archived", archived)
    page = await shown(site, left.id)

    assert page.status_code == 404
    assert "It was archived" in words(page)
    assert "order:7" in words(page)
    assert json.dumps("transient") not in page.text
