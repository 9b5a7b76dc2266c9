"""What binds a child to its supervisor, and how a start that cannot work is told."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest
from supervisor_stage import eventually

from rota.worker.supervisor import wire
from rota.worker.supervisor.block import SIZE, shared_file
from rota.worker.supervisor.leash import Ends

pytestmark = pytest.mark.slow  # real processes, each with a start of its own

CHILD = """
import ctypes, sys
from rota.worker.supervisor.leash import Ends, Leash

leash = Leash(Ends.parse(sys.argv[1]))
leash.bye(0)
{then}
"""


class Bound:
    """A process on a leash whose other end is the test's."""

    def __init__(self, then: str, *, parent: int | None = None) -> None:
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(15)
        block, stack = shared_file(SIZE), shared_file(0)
        ends = Ends(theirs.fileno(), block, stack, 1, parent or os.getpid())
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD.format(then=then), str(ends)],
            pass_fds=ends[:3],
            start_new_session=True,
        )
        theirs.close()
        os.close(block)
        os.close(stack)

    def hello(self) -> None:
        assert wire.read(self.ours.recv(4096)) == (wire.BYE, {"code": 0})

    def close(self) -> None:
        self.ours.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def bound():
    made: list[Bound] = []

    def start(then: str, **options) -> Bound:
        made.append(Bound(then, **options))
        return made[-1]

    yield start
    for one in made:
        one.close()


def test_a_child_ends_when_the_other_end_of_its_leash_is_gone(bound):
    child = bound("__import__('time').sleep(60)")
    child.hello()
    child.ours.close()

    assert child.process.wait(5) == -signal.SIGKILL


def test_a_child_whose_parent_was_gone_before_it_began_does_not_begin(bound):
    assert bound("__import__('time').sleep(60)", parent=1).process.wait(15) == 1


def test_a_stop_before_there_is_a_worker_simply_ends_the_child(bound):
    child = bound("__import__('time').sleep(60)")
    child.hello()
    child.ours.sendall(wire.line(wire.STOP))

    assert child.process.wait(5) == 0


def test_what_a_child_starts_does_not_inherit_the_leash(bound):
    child = bound(
        "import subprocess; subprocess.run([sys.executable, '-c', "
        "'import os; print(sorted(os.listdir(\"/proc/self/fd\")))'], close_fds=False, stdout=sys.stderr)"
    )
    child.hello()

    assert child.process.wait(15) == 0
    assert child.ours.recv(1) == b"", "nobody holds it open"


@pytest.mark.parametrize(
    ("program", "code", "words"),
    [
        ("def broken(:", 2, "jobs.py could not be imported: SyntaxError"),
        (
            "import sys; sys.exit('no licence')",
            1,
            "ended the process while it was imported: sys.exit('no licence')",
        ),
        ("x = 1", 2, "'jobs.py' has no Rota app"),
    ],
)
def test_an_app_that_can_never_start_ends_the_command_with_its_reason(stage, program, code, words):
    (stage.directory / "jobs.py").write_text(program)
    worker = stage.work("--processes", "2")

    assert worker.end() == code
    assert words in worker.said
    assert worker.said.count("rota: ") == 1
    assert "stopping" not in worker.said


def test_a_resource_that_cannot_be_opened_ends_the_command_too(stage):
    (stage.directory / "jobs.py").write_text(
        "from rota import Rota\napp = Rota()\n@app.resource\nasync def pool():\n"
        "    raise OSError('no route')\n    yield\n"
    )
    worker = stage.work()

    assert worker.end() == 1
    assert "its resource 'pool' could not be opened (OSError: no route)" in worker.said


def test_the_hidden_option_of_children_is_refused_in_the_hands_of_people(stage):
    worker = stage.work("--child", "nonsense")

    assert worker.end() == 2
    assert "--child is for the supervisor of `rota worker` only" in worker.said


def test_the_processes_of_a_worker_are_named_by_their_command_lines(stage):
    import psutil

    worker = stage.work("-c", "7", "--tasks", "quick")
    [child] = worker.working()
    line = psutil.Process(child).cmdline()

    assert line[3:9] == ["worker", "jobs.py", "--tasks", "quick", "--concurrency", "7"]
    eventually(lambda: "general=7" in worker.said)
