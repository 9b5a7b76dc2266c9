"""The child: a fresh Python that imports the app, then runs one job after another as the worker tells it.

Threads: the main one calls handlers that are plain functions, because only there a
signal can interrupt them; `rota-loop` runs coroutines, middleware and resources;
`rota-ear` hears the worker. Nothing here holds a lease or settles a job.
"""

from __future__ import annotations

import asyncio
import contextlib
import faulthandler
import gc
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeAlias, cast

from rota._core.outcome import completed
from rota.config import hand_over
from rota.current import RunningJob, home, keeper, running
from rota.stores.contract import Answer
from rota.task import Task
from rota.worker.executors.process import telling
from rota.worker.executors.process.place import Place, Surroundings, find, take_over
from rota.worker.executors.process.stored import OutOfReach
from rota.worker.executors.process.system import DUMP_SIGNAL, limit_cpu, settle_in
from rota.worker.executors.process.wire import Frames, Header, to_job
from rota.worker.host import Host
from rota.worker.opening import close_all, open_all

Call: TypeAlias = "tuple[Context, Callable[[], Any], Future[Any]]"

BOOT_LIMIT = 8_388_608
LINE_CUT = 70
"""The exit code of a child whose handler closed what is not its own: nothing could be told to the worker any more."""


class Interrupted(BaseException):
    """Raised in a plain function whose job was told to stop: its timeout passed, or somebody cancelled it."""


class Child:
    """This process. `serve()` is its life."""

    def __init__(self, line: socket.socket, boot: Header) -> None:
        self.pid = os.getpid()
        self.telling = telling.Telling(line, self.pid)
        self._line, self._boot, self._descriptor = line, boot, line.fileno()
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._app: Host | None = None
        self._opened: list[Any] = []
        self._lock = threading.Lock()
        self._number = 0
        """The job that runs now; 0: none."""
        self._job: RunningJob | None = None
        self._task: asyncio.Task[None] | None = None
        self._begun = 0
        """The job whose coroutine has taken its first step."""
        self._in_main = 0
        """The job whose plain function is in the main thread now."""
        self._interrupt = 0
        """The job that is to be interrupted there."""

    def serve(self, heard: Frames) -> None:
        """Import the app, open its resources, and call what comes until the worker says goodbye."""
        signal.signal(signal.SIGTERM, self._signalled)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the worker's business
        threading.Thread(target=self._turn, name="rota-loop", daemon=True).start()
        if not self._prepare():
            return
        threading.Thread(target=self._hear, args=(heard,), name="rota-ear", daemon=True).start()
        while (call := self._calls.get()) is not None:
            self._call(*call)
            del call
        self._on_loop(self._leave()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)

    # Beginning and end

    def _prepare(self) -> bool:
        try:
            take_over(Surroundings(*(_tupled(part) for part in self._boot["around"])))
            app = cast("Any", find(Place(*self._boot["place"])).home)
            if self._boot["out_of_reach"]:
                app._store = OutOfReach(self._boot["store"])  # noqa: SLF001 - this process is not the app's own
            telling.hear_all(self.telling, self._boot["level"])
            self._app = app
            self._opened = self._on_loop(open_all(app.resources)).result()
        except BaseException as error:
            self.telling.say(
                {"is": "failed", "error": _words(error), "stack": traceback.format_exc()[-4000:]}
            )
            return False
        gc.collect()
        gc.freeze()
        self.telling.say({"is": "ready"})
        return True

    async def _leave(self) -> None:
        assert self._app is not None
        await close_all(self._opened)
        with contextlib.suppress(Exception):
            await self._app.store.close()

    def _turn(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        except BaseException:  # a handler closed what the loop stands on
            os._exit(LINE_CUT)

    def _on_loop(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    # What the worker says

    def _hear(self, heard: Frames) -> None:
        """Hear the worker until it has gone; without it there is nothing to live for."""
        with contextlib.suppress(OSError):
            while data := self._line.recv(65_536):
                for header, _ in heard.feed(data):
                    self._heed(header)
        os._exit(0)

    def _heed(self, header: Header) -> None:
        match header["is"]:
            case "run":
                with self._lock:  # at once, so that a stop that follows on its heels finds it
                    self._number, self._job = header["number"], RunningJob(to_job(header["job"]))
                self._loop.call_soon_threadsafe(self._begin, self._job, header)
            case "stop":
                self._stop(header["number"])
            case "leave":
                self._calls.put(None)

    def _begin(self, job: RunningJob, header: Header) -> None:
        self._task = self._loop.create_task(self._run(job, header["number"], Place(*header["place"])))

    def _stop(self, number: int) -> None:
        with self._lock:
            if number != self._number or self._job is None:
                return  # it has ended meanwhile
            self._job.cancel_requested = True
            if self._in_main == number:
                self._interrupt = number
                signal.pthread_kill(cast("int", threading.main_thread().ident), signal.SIGTERM)
            else:
                self._loop.call_soon_threadsafe(self._cancel, number)

    def _cancel(self, number: int) -> None:
        # One that has not begun looks at `cancel_requested` itself; cancelling it now would end it without a word.
        if self._begun == number and self._task is not None:
            self._task.cancel()

    def _signalled(self, *_: Any) -> None:
        """Interrupt the plain function that is to stop. A signal of anybody else means nothing: the worker decides."""
        if self._interrupt and self._interrupt == self._in_main:
            self._interrupt = 0
            raise Interrupted("this job was told to stop")

    # One job

    async def _run(self, job: RunningJob, number: int, place: Place) -> None:
        running.set(job)
        keeper.set(self.telling.line)
        home.set(None if self._app is None else self._app.store)
        limit_cpu(self._boot["limits"]["cpu"])
        self._begun = self.telling.number = number
        try:
            end, body = await self._ended(job, place)
        except Exception as error:  # whatever goes wrong in putting its end into words, the job must end
            end, body = telling.untold(error), b""
        if os.getpid() != self.pid:
            os._exit(0)  # the handler forked, and this is the copy: the job's end is not its business
        with self._lock:
            self._number = self._begun = 0
            self._job, self._task = None, None
        self.telling.number = 0
        _flush()
        self.telling.say({"is": "end", "number": number, **end}, body)

    async def _ended(self, job: RunningJob, place: Place) -> tuple[Header, bytes]:
        """Run a job to its end, whatever that is, and put the end into words."""
        task: Task[..., Any] | None = None
        try:
            task = find(place)
            args, kwargs = task.arguments(job.job.payload_json)
        except Exception as error:
            return telling.unfit(error), b""
        try:
            if job.cancel_requested:
                raise Interrupted("this job was told to stop before it began")
            value = await self._called(job, task, partial(task.fn, *args, **kwargs))
        except BaseException as error:  # SystemExit and KeyboardInterrupt end the job, not the process
            await _undo(job)
            return telling.raised(error, task.retry), b""
        try:
            text = task.dump_result(value)
        except BaseException as error:
            await _undo(job)
            return telling.raised(error, task.retry) | {"how": "unstorable"}, b""
        end: Header = {"how": "returned", "result": text is not None}
        if job.work is not None:
            try:
                done = completed(job.job)._replace(result_json=text)
                # What came too late is told as any end: the worker hears from the store that it did.
                end["written"] = (await job.work.complete(done)).answer is Answer.APPLIED
            except BaseException as error:
                await _undo(job)
                return telling.raised(error, task.retry), b""
        return end, (text or "").encode()

    async def _called(self, job: RunningJob, task: Task[..., Any], call: Callable[[], Any]) -> Any:
        """The handler inside all middleware; the first that was registered is outermost."""
        assert self._app is not None
        inner: Callable[[], Any] = call if task.is_async else partial(self._in_main_thread, call)
        for layer in reversed(self._app.middleware):
            inner = partial(layer, job, inner)
        return await inner()

    async def _in_main_thread(self, call: Callable[[], Any]) -> Any:
        """A plain function as something to await. Cancelling it changes nothing until the function has ended."""
        done: Future[Any] = Future()
        waiting = asyncio.wrap_future(done)
        self._calls.put((copy_context(), call, done))
        while not waiting.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(waiting)
        return waiting.result()

    def _call(self, context: Context, call: Callable[[], Any], done: Future[Any]) -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            try:
                with self._lock:
                    self._in_main = self._number
                    stopped = self._job is None or self._job.cancel_requested
                if stopped:
                    raise Interrupted("this job was told to stop before it began")
                value = context.run(call)
            except BaseException as raised:
                error = raised
            finally:
                self._in_main = 0
        except Interrupted as late:  # it came between the end of the function and the line above
            error = error or late
        self._in_main = self._interrupt = 0
        if os.getpid() != self.pid:
            os._exit(0)  # the handler forked and let the copy return
        if not _is_open(self._descriptor):
            os._exit(LINE_CUT)  # nobody would ever hear of the end
        _hand_in(done, value, error)


async def _undo(job: RunningJob) -> None:
    if job.work is not None:
        await job.work.undo()


def _hand_in(done: Future[Any], value: Any, error: BaseException | None) -> None:
    # A StopIteration cannot be set on a future; what it means for the job is the same.
    if isinstance(error, StopIteration):
        error = RuntimeError(f"the handler raised {error!r}")
    if error is None:
        done.set_result(value)
    else:
        done.set_exception(error)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _tupled(part: Any) -> Any:
    return tuple(part) if isinstance(part, list) else part


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()


def main() -> None:
    """Called in the fresh process: its arguments are the descriptors of its line and of its last words."""
    line_fd, last_words_fd, parent = map(int, sys.argv[1:4])
    line = socket.socket(fileno=line_fd)
    for descriptor in (line_fd, last_words_fd):
        os.set_inheritable(descriptor, False)
    faulthandler.enable(file=last_words_fd)
    faulthandler.register(DUMP_SIGNAL, file=last_words_fd, all_threads=True, chain=False)
    heard = Frames(body_limit=0, header_limit=BOOT_LIMIT)
    boot: Header | None = None
    while boot is None:
        data = line.recv(65_536)
        if not data:
            return
        boot = next((header for header, _ in heard.feed(data)), None)
    settle_in(parent, boot["limits"])
    hand_over(boot["settings"])
    Child(line, boot).serve(heard)
