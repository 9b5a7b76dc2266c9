"""Posts and the children that fill them: nothing is left open, and a renewal is done only by who came after it."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from pathlib import Path

import pytest

from rota.worker.supervisor import child as module
from rota.worker.supervisor.child import Child
from rota.worker.supervisor.posts import Post
from rota.worker.supervisor.wire import Facts

SPEAKER = "import os, sys, time; os.write(int(sys.argv[2].split(',')[0]), {words!r}); time.sleep(60)"


def a_post() -> Post:
    return Post(1, (), lambda: None, lambda post, child, code: None)


def a_worker_that_says(words: bytes) -> tuple[str, ...]:
    return (sys.executable, "-c", SPEAKER.format(words=words))


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def lived(child: Child, words: bytes) -> int:
    await child.start(a_worker_that_says(words), lambda: None)
    async with asyncio.timeout(60):
        return await child.live()


@pytest.mark.parametrize("words", [b'{"word": "ready", "colour": "green"}\n', b"hello\n", b"[]\n"])
async def test_a_child_that_speaks_otherwise_than_its_supervisor_is_ended_and_says_what_to_do(words):
    child = Child(1)
    code = await lived(child, words)
    child.close()

    assert code < 0
    assert child.failed is not None
    assert "restart this worker as a whole" in child.failed.message


async def test_a_child_that_is_gone_is_asked_for_nothing():
    child = Child(1)
    await lived(child, b"hello\n")
    child.facts = Facts(None, "memory", 1.0, 1.0, 1.0, 1.0, 1.0, {}, 1)
    child.close()

    assert await child.write_stack() == ""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted in /proc")
async def test_a_child_that_could_not_be_started_leaves_no_descriptor_open(monkeypatch):
    def refuse(fd: int) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(module, "Block", refuse)
    before = open_descriptors()
    kept = [Child(1) for _ in range(3)]
    for child in kept:
        with pytest.raises(OSError, match="memory"):
            await child.start(("true",), lambda: None)

    assert open_descriptors() == before


def test_who_started_after_a_renewal_was_asked_for_does_it():
    post = a_post()
    post.renew("it was asked for")
    post.child = Child(1)

    assert post.renewed(post.child)
    assert post.renewal is None
    assert not post.renewed(post.child), "once"


def test_who_started_before_a_renewal_was_asked_for_has_the_old_code_and_does_not_do_it():
    post = a_post()
    post.heir = Child(1)
    post.renew("it was asked for")
    post.hand_over()
    assert post.child is not None

    assert not post.renewed(post.child)
    assert post.renewal == "it was asked for"
