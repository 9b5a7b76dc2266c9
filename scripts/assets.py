"""Fetch what the dashboard's pages load in the browser, by package-lock.json, into the package's `vendor` folder.

    python scripts/assets.py            the files of the wheel; nothing is done when they fit the lock already
    python scripts/assets.py --tests    also node_modules with what the browser tests want (axe)
    python scripts/assets.py --strict   a failure is an error (CI), not a warning

hatch_build.py calls this for every wheel, sdist and editable install. It needs npm, and the registry or a mirror of it;
without them the package is built without these files, and its pages say what is missing. ROTA_NPM=no asks for that.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = Path("src/rota/web/static/vendor")
STAMP = "vendor.json"

# The file as the pages know it, and where npm puts it.
FILES = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "hx-sse.min.js": "htmx.org/dist/ext/hx-sse.min.js",
    "htmx.LICENSE.txt": "htmx.org/LICENSE",
    "uPlot.iife.min.js": "uplot/dist/uPlot.iife.min.js",
    "uPlot.min.css": "uplot/dist/uPlot.min.css",
    "uPlot.LICENSE.txt": "uplot/LICENSE",
}
AXE = Path("node_modules/axe-core/axe.min.js")

# An offline machine should learn of it soon, and no package may run code of its own here.
CLEAN_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--loglevel=error")
PATIENCE = 180


class Missing(Exception):
    """The files cannot be fetched here; the text says why and what to do."""


def wanted(root: Path) -> dict[str, object]:
    """What the vendor folder was made from, if it is up to date."""
    lock = (root / "package-lock.json").read_bytes()
    packages = json.loads(lock)["packages"]
    return {
        "lock": hashlib.sha256(lock).hexdigest(),
        "packages": {name: packages[f"node_modules/{name}"]["version"] for name in ("htmx.org", "uplot")},
        "files": sorted(FILES),
    }


def up_to_date(root: Path) -> bool:
    """Whether every file is there and comes from the lock file as it is now."""
    folder = root / VENDOR
    try:
        made_from = json.loads((folder / STAMP).read_text())
    except (OSError, ValueError):
        return False
    return made_from == wanted(root) and all((folder / name).is_file() for name in FILES)


def npm(root: Path, *words: str) -> None:
    """Run npm in `root`, or say why not."""
    program = shutil.which("npm")
    if os.environ.get("ROTA_NPM") == "no":
        raise Missing("ROTA_NPM=no: the dashboard's scripts were not fetched.")
    if program is None:
        raise Missing("there is no npm in PATH. Install Node.js with npm (Debian: apt-get install npm).")
    try:
        subprocess.run(
            [program, *words], cwd=root, check=True, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise Missing(f"npm did not finish within {PATIENCE} s. Is its registry within reach?") from None
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip() or f"exit code {error.returncode}"
        raise Missing(f"npm {words[0]} failed: {said}") from None


def fetch(root: Path = ROOT) -> bool:
    """Fill the vendor folder if it does not fit the lock; whether anything was done. `Missing` if that cannot be."""
    if up_to_date(root):
        return False
    with tempfile.TemporaryDirectory(prefix="rota-assets-") as scratch:
        # In a copy, so that a build leaves no node_modules in the tree and never touches a developer's.
        place = Path(scratch)
        for name in ("package.json", "package-lock.json", ".npmrc"):
            if (root / name).exists():
                shutil.copy(root / name, place)
        npm(place, *CLEAN_INSTALL, "--omit=dev")
        folder = root / VENDOR
        folder.mkdir(parents=True, exist_ok=True)
        (folder / STAMP).unlink(missing_ok=True)  # what is half done must not look finished
        for stale in {path.name for path in folder.iterdir()} - FILES.keys():
            (folder / stale).unlink()
        for name, source in FILES.items():
            beside = folder.parent / f".{name}.{os.getpid()}"
            shutil.copyfile(place / "node_modules" / source, beside)
            beside.replace(folder / name)  # a page that is being served gets the old file or the new one
        (folder / STAMP).write_text(json.dumps(wanted(root), indent=2) + "\n")
    return True


def fetch_for_tests(root: Path = ROOT) -> bool:
    """Fill node_modules, development packages included, if it does not fit the lock; whether anything was done."""
    lock, installed = root / "package-lock.json", root / "node_modules/.package-lock.json"
    if installed.exists() and (root / AXE).exists() and installed.stat().st_mtime >= lock.stat().st_mtime:
        return False
    npm(root, *CLEAN_INSTALL)
    return True


def main(words: list[str]) -> int:
    """Fetch what the words ask for; 0 also without the files, unless --strict."""
    try:
        if fetch():
            print(f"fetched the dashboard's scripts into {VENDOR}")
        if "--tests" in words and fetch_for_tests():
            print("fetched what the browser tests want into node_modules")
    except Missing as why:
        print(f"warning: the dashboard's scripts are missing or old: {why}", file=sys.stderr)
        return 1 if "--strict" in words else 0
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
