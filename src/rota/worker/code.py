"""Which code this is: what a crash is counted against, and what makes a newer task of the same name."""

from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from rota.worker.host import Host

_read: WeakKeyDictionary[Host, str] = WeakKeyDictionary()


def code_version(host: Host) -> str:
    """The app's word, else the setting `code_version`, else a hash of the files that define its tasks."""
    given = host.code_version or host.settings.code_version
    if given:
        return given
    if host not in _read:  # once: what is on the disk later is not what runs here
        _read[host] = _of_sources(host)
    return _read[host]


def _of_sources(host: Host) -> str:
    """The same for the same code on every machine: paths do not count. Libraries are not looked at."""
    digest = hashlib.sha256()
    for name, content in sorted({_source(task.fn) for task in host.tasks.values()}):
        digest.update(name.encode() + b"\0" + content)
    return f"source-{digest.hexdigest()[:12]}"


def _source(fn: Any) -> tuple[str, bytes]:
    module = getattr(fn, "__module__", None) or ""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None:
        return module, repr(fn).encode()
    try:
        return module, hashlib.sha256(Path(code.co_filename).read_bytes()).digest()
    except OSError:  # a notebook, or a file that is gone
        return f"{module}.{code.co_qualname}", code.co_code
