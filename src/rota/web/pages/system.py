"""The store and this server: what it is, what takes room, what is not well, what is kept how long, who may ask."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, NamedTuple

from fastapi import Path, Query
from starlette.responses import Response

from rota._core.lengths import many, span
from rota._core.operation import grown
from rota._core.retention import EVERYTHING, Foreseen, Policy
from rota._core.room import Room
from rota._core.token import Token
from rota.admin.retention import default_policies
from rota.config import masked
from rota.errors import ConfigError, StoreError
from rota.stores.contract import Finding, PrivateFinding
from rota.web.asking import Asked, Asking
from rota.web.driving import drivers_of
from rota.web.pages import charting
from rota.web.pages.charting import known
from rota.web.pages.forms import TYPED_FROM, Formed, back, whole_number
from rota.web.pages.notices import Notice
from rota.web.pages.rendering import STATIC, path_to, render
from rota.web.pages.routing import PageRoutes
from rota.web.pages.sharing import SAMPLED, shared
from rota.web.pages.spans import RANGES, Range, Ranged
from rota.web.roles import Role

routes = PageRoutes()

FRESH = 10.0
"""Seconds for which an examination counts: it opens connections of its own."""
EXAMINING = 8.0
"""Seconds that it may take before the page comes without it."""
LEVELS = ("bad", "warn", "ok")
"""The worst first."""


class Setting(NamedTuple):
    """One setting, and who says so."""

    name: str
    value: str
    origin: str


class Examined:
    """The last examination of this server's store, shared by all who look at it within a few seconds."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._at = 0.0
        self._found: Sequence[Finding] | None = None

    async def by(self, asked: Asking) -> Sequence[Finding]:
        async with self._turn:
            if self._found is None or time.monotonic() - self._at > FRESH:
                self._found = await _examined(asked)
                self._at = time.monotonic()
            return self._found


@routes.get("/system", verb="system", role=Role.VIEWER)
async def system(
    asked: Asked,
    chosen: Ranged,
    foresee: Annotated[bool, Query(description="Count what retention would let go now.")] = False,
) -> Response:
    """Everything about the store and this server."""
    if asked.tenant is not None:
        return render(asked, "system_tenant.html", title="System", here="system")
    foreseen = await asked.admin.foresee(EVERYTHING) if foresee and asked.may(Role.MANAGER) else None
    return await _page(asked, chosen, foreseen)


async def _page(
    asked: Asking,
    chosen: Range,
    foreseen: Sequence[Foreseen] | None,
    *,
    wrong: str = "",
    status: int = 200,
    reason: str | None = None,
) -> Response:
    admin, manager = asked.admin, asked.may(Role.MANAGER)
    found = await _examination(asked).by(asked)
    findings = sorted(
        found if manager else map(_without_address, found), key=lambda finding: LEVELS.index(finding.level)
    )
    room, policies, tokens, now, samples = await asyncio.gather(
        _room(asked),
        _policies(asked),
        _tokens(asked) if manager else _nothing(),
        known(admin.store.now()),
        known(shared(asked, ("room", chosen.word), lambda: admin.room_series(chosen.seconds), lasts=SAMPLED)),
    )
    return render(
        asked,
        "system.html",
        title="System",
        here="system",
        status=status,
        at=path_to(asked, "page.system") if wrong else None,
        wrong=wrong,
        reason=reason or "",
        now=now or datetime.now(UTC),
        room=room,
        drawn=charting.room(samples),
        columns=charting.ROOM,
        chosen=chosen,
        choices=list(RANGES),
        behind=room is not None and room.schema is not None and room.schema != room.needed,
        findings=findings,
        troubles=sum(finding.level != "ok" for finding in findings),
        policies=policies,
        defaults=default_policies(),
        keeps=_keeps,
        foreseen=foreseen,
        goes=_jobs(foreseen or ()),
        bound=sum(row.bound for row in foreseen or ()),
        many_jobs=TYPED_FROM,
        settings=_settings(asked),
        tokens=tokens,
        assets=_assets(),
        about=_about,
    )


@routes.post("/system/prune", verb="system_prune", role=Role.MANAGER)
async def prune(asked: Asked, form: Formed) -> Response:
    """Let go now of what is past its time, as was shown."""
    foreseen = await asked.admin.foresee(EVERYTHING)
    goes, expected = _jobs(foreseen), whole_number(form.text("expected", most=20))
    again, status = None, 422
    if expected is None:
        again = "How many jobs you were shown is missing from the form. Look at the number, then decide."
    elif grown(expected, goes):
        again, status = f"{many(goes, 'job')} would go by now, and you were shown {expected:,}.", 409
        again += " Look again, then decide."
    elif expected > TYPED_FROM and whole_number(form.text("number", most=20)) != expected:
        again = f"The number that was typed is another one. Type {goes} to go on."
    if again is not None:
        return await _page(asked, Range(), foreseen, wrong=again, status=status, reason=form.reason)
    drivers = drivers_of(asked.request.app)
    with drivers.room(asked.key):
        drivers.start_purge(asked.admin, form.reason, asked.key)
    notice = Notice(
        f"Retention lets go of {many(goes, 'job')}, a few at a time. The audit says when it is done.",
        link=path_to(asked, "page.activity", query={"action": "pruned"}),
    )
    return back(asked, form, notice, to=path_to(asked, "page.system"))


@routes.post(
    "/system/tokens/{token_id}/revoke",
    verb="token_revoke",
    role=Role.MANAGER,
)
async def revoke(asked: Asked, token_id: Annotated[str, Path(max_length=100)], form: Formed) -> Response:
    """Let a token count no more, at once and for good."""
    revoked = await asked.admin.revoke_token(token_id, reason=form.reason)
    notice = Notice(f"Revoked {revoked.name} ({revoked.id}). Whoever shows it is refused from now on.")
    return back(asked, form, notice, to=f"{path_to(asked, 'page.system')}#tokens")


def _jobs(foreseen: Sequence[Foreseen]) -> int:
    return sum(row.jobs for row in foreseen)


async def _examined(asked: Asking) -> Sequence[Finding]:
    try:
        async with asyncio.timeout(EXAMINING):
            return await asked.admin.examine()
    except TimeoutError:
        return [
            Finding(
                "warn", f"the examination took more than {EXAMINING:.0f} s", "Try `rota doctor` in a shell."
            )
        ]


def _examination(asked: Asking) -> Examined:
    state = asked.request.app.state
    found: Examined | None = getattr(state, "examined", None)
    if found is None:
        found = state.examined = Examined()
    return found


async def _room(asked: Asking) -> Room | None:
    try:
        return await shared(asked, "room", asked.admin.room, lasts=SAMPLED)
    except StoreError:
        return None


async def _policies(asked: Asking) -> Sequence[Policy] | None:
    try:
        return await asked.admin.policies()
    except StoreError:
        return None


async def _tokens(asked: Asking) -> Sequence[Token] | None:
    try:
        return await asked.admin.tokens()
    except StoreError:
        return None


async def _nothing() -> None:
    return None


def _keeps(policy: Policy) -> str:
    return "for ever" if policy.keep is None else span(policy.keep)


def _about(row: Foreseen) -> str:
    return "default" if row.policy is None else row.policy.words


def _without_address(finding: Finding) -> Finding:
    """Where the store is concerns those who look after it."""
    if not isinstance(finding, PrivateFinding):
        return finding
    words = "the store answers" if finding.level == "ok" else "the store cannot be reached as it should"
    return finding._replace(what=f"{finding.what.partition(':')[0]}: {words}")


def _settings(asked: Asking) -> list[Setting]:
    """As `rota config` shows them: passwords are masked."""
    try:
        settings = asked.rota.settings
        rows = [Setting(row.name, row.value, row.origin) for row in settings.shown()]
        return [*rows, Setting("store", masked(settings.address()), "in effect")]
    except ConfigError:  # the app was given its store, and nothing is set where it runs
        return []


@cache
def _assets() -> dict[str, str]:
    """What npm brought into the pages, by version."""
    try:
        packages = json.loads((STATIC / "vendor/vendor.json").read_text())["packages"]
        return {str(name): str(version) for name, version in packages.items()}
    except (OSError, ValueError, KeyError):
        return {}
