"""Find the app that a command is about: `module:attr`, `file.py`, `file.py:attr`, or the one that is here."""

from __future__ import annotations

import importlib
import sys
import sysconfig
import traceback
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rota.cli.exits import NoApp, Wrong

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from rota.app import Rota

USUAL = ("jobs.py", "app.py", "tasks.py", "main.py")
HOW = 'Write module:attr or file.py:attr, or put `app = "jobs.py"` into rota.toml.'


def find_app(given: str | None, configured: str | None = None) -> Rota:
    """The app that was named, else the configured one, else the one in the usual files of this directory."""
    return load_app(reference(given, configured))


def reference(given: str | None, configured: str | None = None) -> str:
    """What names the app, without importing it."""
    if given or configured:
        return given or configured or ""
    for name in USUAL:
        path = Path(name)
        # Only a file that speaks of Rota is imported: main.py may be anything.
        if path.is_file() and "rota" in path.read_text(encoding="utf-8", errors="replace").lower():
            return name
    raise NoApp(
        f"no app was named, and none of {', '.join(USUAL)} here has one. {HOW} `rota init` writes a first one."
    )


def check_file(named: str) -> None:
    """`NoApp` when `named` is a file that is not there; imports nothing."""
    target = named.partition(":")[0]
    if _is_file(target):
        _found_file(Path(target))


def load_app(text: str) -> Rota:
    """Import what `text` names and take the Rota object out of it."""
    target, _, attribute = text.partition(":")
    module = _import_file(Path(target)) if _is_file(target) else _import_module(target, text)
    return _take(module, attribute, text)


def load_function(text: str, option: str) -> Callable[..., Any]:
    """Import the function that an option names, as `module:function` or `file.py:function`."""
    target, _, attribute = text.partition(":")
    if not attribute:
        raise Wrong(f"{option} {text!r} names no function. Write module:function or file.py:function.")
    module = _import_file(Path(target)) if _is_file(target) else _import_module(target, text)
    found = getattr(module, attribute, None)
    if not callable(found):
        what = "is not a function" if hasattr(module, attribute) else "does not exist"
        close = get_close_matches(
            attribute, [name for name in vars(module) if callable(vars(module)[name])], n=1
        )
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise Wrong(f"{option} {text!r}: {attribute!r} {what} in {module.__name__}.{hint}")
    named: Callable[..., Any] = found
    return named


def _is_file(target: str) -> bool:
    return target.endswith(".py") or "/" in target


def _found_file(path: Path) -> Path:
    if path.is_dir():
        raise NoApp(f"{str(path)!r} is a directory, and an app is in a file. {HOW}")
    if not path.is_file():
        near = get_close_matches(path.name, [found.name for found in path.parent.glob("*.py")], n=1)
        hint = f" Did you mean {str(path.with_name(near[0]))!r}?" if near else ""
        raise NoApp(f"there is no file {str(path)!r}.{hint} {HOW}")
    return path.resolve()


def _import_file(path: Path) -> ModuleType:
    path = _found_file(path)
    names, root = [path.stem], path.parent
    while (root / "__init__.py").exists():  # inside a package its relative imports must work
        names.insert(0, root.name)
        root = root.parent
    return _imported(".".join(names), root, str(path))


def _import_module(name: str, text: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise NoApp(f"{text!r} names no app. {HOW}")
    return _imported(name, Path.cwd(), text)


def _imported(name: str, root: Path, text: str) -> ModuleType:
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (error.name == name or name.startswith(f"{error.name}.")):
            raise NoApp(
                f"there is no module {name!r} on the path, which begins with {root}. {HOW}"
            ) from error
        raise _broken(text, error) from error
    except Exception as error:
        raise _broken(text, error) from error


def _broken(text: str, error: Exception) -> Wrong:
    """The app's own error, with its own line: that is where to look."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_own(frame.filename)]
    said = str(error)
    if isinstance(error, SyntaxError):
        said, where = error.msg, f"{error.filename}, line {error.lineno}"  # its text has the line too
    elif own:
        where = f"{own[-1].filename}, line {own[-1].lineno}"
    else:
        where = text
    return Wrong(
        f"{text} could not be imported: {type(error).__name__}: {said} ({where}). Run again with -v for the traceback."
    )


def _is_own(filename: str) -> bool:
    """Whether a frame is the user's: not ours, not Python's, not an installed package's."""
    others = (str(Path(__file__).parents[1]), sysconfig.get_path("stdlib"), "<")
    return not filename.startswith(others) and "site-packages" not in filename


def _take(module: ModuleType, attribute: str, text: str) -> Rota:
    from rota.app import Rota

    apps = {name: value for name, value in vars(module).items() if isinstance(value, Rota)}
    if attribute:
        found = getattr(module, attribute, None)
        if isinstance(found, Rota):
            return found
        what = "is not a Rota app" if hasattr(module, attribute) else "does not exist"
        close = get_close_matches(attribute, apps, n=1) or list(apps)[:1]
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise NoApp(
            f"{text!r}: {attribute!r} {what} in {module.__name__}.{hint} An app is made by `app = Rota()`."
        )
    distinct = {id(value): name for name, value in reversed(apps.items())}
    if len(distinct) == 1:
        return next(iter(apps.values()))
    if not distinct:
        raise NoApp(f"{text!r} has no Rota app: nothing in it is made by `app = Rota()`. {HOW}")
    names = sorted(distinct.values())
    raise NoApp(f"{text!r} has {len(names)} apps ({', '.join(names)}); say which: {text}:{names[0]}.")
