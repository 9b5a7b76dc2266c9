"""A reader who types the Python blocks of one page, one after the other, into one session.

Run as a program: reads blocks as JSON lines, answers one JSON line each. `await` works at the top level,
as in a notebook; names of earlier blocks stay known.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import os
import sys
import traceback
import types
from pathlib import Path


def main() -> None:
    # Answers travel on the first stdout; whatever a block prints goes to stderr, which is kept in a file.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.path.insert(0, str(Path.cwd()))
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            block = json.loads(line)
            trouble = typed(runner, module, block["text"], block["place"])
            print(json.dumps({"trouble": trouble}), file=answers)


def typed(runner: asyncio.Runner, module: types.ModuleType, text: str, place: str) -> str | None:
    """Run one block; the traceback as text if it fails."""
    try:
        code = compile(text, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(types.FunctionType(code, module.__dict__)())
        else:
            exec(code, module.__dict__)
    except BaseException:
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    main()
