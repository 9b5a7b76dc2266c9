"""Tasks: what can be one, what it is called, and what a plain call does."""

from __future__ import annotations

import functools
import inspect

import pytest

from rota import Retry, Rota, Unique
from rota.errors import TaskError


async def test_a_plain_call_runs_the_function_here(memory_app):
    @memory_app.task
    async def double(number: int) -> int:
        return number * 2

    assert await double(21) == 42


def test_a_plain_call_of_a_sync_task_is_just_a_call(memory_app):
    @memory_app.task(queue="fast")
    def double(number: int) -> int:
        return number * 2

    assert double(21) == 42


def test_a_task_is_named_like_its_function_and_keeps_its_looks(memory_app):
    @memory_app.task
    def send_email(to: str) -> None:
        """Send it."""

    assert send_email.name == "send_email"
    assert memory_app.tasks == {"send_email": send_email}
    assert send_email.__doc__ == "Send it."
    assert str(inspect.signature(send_email)) == "(to: 'str') -> 'None'"


def test_the_decorator_gives_defaults(memory_app):
    @memory_app.task(
        name="mail",
        queue="fast",
        priority=50,
        retry=3,
        timeout="2m",
        category="sync",
        tags=["a"],
        executor="thread",
    )
    def send_email(to: str) -> None: ...

    task = memory_app.tasks["mail"]
    assert (task.queue, task.priority, task.retry, task.timeout) == ("fast", 50, Retry(attempts=3), 120.0)
    assert (task.category, task.tags, task.executor, task.is_async) == ("sync", ("a",), "thread", False)


def test_two_tasks_of_one_name_are_refused_and_both_places_are_named(memory_app):
    @memory_app.task
    def send() -> None: ...

    with pytest.raises(TaskError) as refused:

        @memory_app.task(name="send")
        def transmit() -> None: ...

    message = str(refused.value)
    assert "two tasks are named 'send'" in message
    assert message.count(__file__) == 2
    assert '@app.task(name="...")' in message


def test_the_same_place_again_is_a_reload(memory_app):
    for _ in range(2):

        @memory_app.task
        def send() -> None: ...

    assert memory_app.tasks["send"] is send


def test_a_notebook_cell_may_be_run_again_after_a_change():
    app = Rota()
    for cell in ("def send(a): ...", "\n\ndef send(a, b): ..."):
        names: dict = {}
        exec(compile(cell, "/no/such/ipykernel/cell.py", "exec"), names)
        app.task(names["send"])

    assert list(inspect.signature(app.tasks["send"]).parameters) == ["a", "b"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda app: app.task(lambda: None), "has no name of its own"),
        (lambda app: app.task(functools.partial(print)), "has no name of its own"),
        (lambda app: app.task(name="x")("text"), "@app.task needs a function, not 'text'"),
        (lambda app: app.task(a_generator), "yields; a task returns"),
        (
            lambda app: app.task(takes_anything),
            r"takes \*names, and jobs keep arguments by name. Use one parameter",
        ),
        (
            lambda app: app.task(executor="aio")(plain),
            "executor='aio' needs a function made with `async def`",
        ),
        (
            lambda app: app.task(executor="fibre")(plain),
            "executor='fibre' is not known. Use one of aio, thread",
        ),
        (
            lambda app: app.task(serial="account")(plain),
            r"serial='account' is not one of its parameters \(\)",
        ),
    ],
)
def test_what_cannot_be_a_task_says_why_and_what_to_do(memory_app, make, message):
    with pytest.raises(TaskError, match=message):
        make(memory_app)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"queue": ""}, "queue must not be empty"),
        ({"queue": 7}, "queue must be a text, not 7"),
        ({"priority": -1}, "priority -1 is not a whole number from 0"),
        ({"timeout": "soon"}, "timeout 'soon' is not understood"),
        ({"retry": 0}, "a job needs at least one attempt"),
        ({"tags": "urgent"}, "tags must be a list of texts, not 'urgent'"),
    ],
)
def test_a_wrong_default_is_refused_where_it_is_written(memory_app, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        memory_app.task(**options)(plain)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"until": "later"}, "'later' is not understood"),
        ({"until": 0}, "a window must be longer than nothing"),
        ({"on_duplicate": "drop"}, "choose one of keep, replace, reschedule, merge, reject"),
    ],
)
def test_a_wrong_unique_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Unique("key", **arguments)


def test_a_task_as_data_holds_what_the_registry_needs(memory_app):
    @memory_app.task(
        queue="fast",
        retry=Retry.lipas(),
        timeout=30,
        serial="account",
        payload_version="2.1",
        category="sync",
    )
    def charge(account: int, cents: int = 0) -> None: ...

    spec = charge.spec()

    assert (spec.name, spec.queue, spec.retry, spec.timeout) == ("charge", "fast", Retry.lipas(), 30.0)
    assert (spec.payload_version, spec.gate_path, spec.category) == ("2.1", "account", "sync")
    assert '"required": ["account"]' in spec.schema_json


def test_a_hint_that_is_missing_at_run_time_is_named(memory_app):
    names: dict = {}
    exec("def greet(who: 'Person') -> None: ...", names)
    task = memory_app.task(names["greet"])

    with pytest.raises(
        TaskError, match=r"its type hints name 'Person', which is not there at run time. Import it outside"
    ):
        task.spec()


def test_a_type_without_json_form_is_named_with_its_argument(memory_app):
    class Socket: ...

    @memory_app.task
    def send(to: str, over: Socket) -> None: ...

    with pytest.raises(
        TaskError, match=r"'send': the type .*Socket of argument 'over' has no JSON form .* or pass an id"
    ):
        send.spec()


def a_generator():
    yield 1


def takes_anything(*names: str) -> None: ...


def plain() -> None: ...
