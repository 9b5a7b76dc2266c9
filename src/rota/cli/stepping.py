"""pdb around a task: it stops at the first line, and again where an exception left the function."""

from __future__ import annotations

import functools
import sys
from bdb import BdbQuit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pdb import Pdb
from typing import Any

from rota.errors import Outcome


def stepped(fn: Callable[..., Any], is_async: bool) -> Callable[..., Any]:
    """`fn`, begun under pdb. A coroutine stops there too; the event loop waits while somebody types."""
    if is_async:

        @functools.wraps(fn)
        async def begun(*args: Any, **kwargs: Any) -> Any:
            with _debugger():
                return await fn(*args, **kwargs)

    else:

        @functools.wraps(fn)
        def begun(*args: Any, **kwargs: Any) -> Any:
            with _debugger():
                return fn(*args, **kwargs)

    return begun


@contextmanager
def _debugger() -> Iterator[None]:
    debugger = Pdb(skip=["contextlib", "rota.*"])
    debugger.reset()
    sys.settrace(debugger.trace_dispatch)
    try:
        yield
    except (Outcome, BdbQuit):
        raise
    except Exception as error:
        sys.settrace(None)
        debugger.message(f"{type(error).__name__}: {error}")
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None and _ours(trace.tb_frame.f_code.co_filename):
            trace = trace.tb_next
        debugger.reset()
        debugger.interaction(None, trace)
        raise
    finally:
        sys.settrace(None)


def _ours(file: str) -> bool:
    return file == __file__
