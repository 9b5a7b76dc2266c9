"""What goes wrong, as `application/problem+json` (RFC 9457): what, which value, what to do. Never internals."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from rota._core.filtering import FilterError
from rota._core.ids import public_id
from rota.admin.scope import OutOfScope
from rota.admin.tokens import TokenNotFound, TokenRevoked
from rota.admin.worker_orders import OrderRefused, WorkerNotFound
from rota.errors import (
    EnqueueError,
    GroupNotFound,
    JobArchived,
    JobError,
    JobNotFound,
    KeyConflict,
    NotSupported,
    NotUnique,
    OperationNotFound,
    QueueFull,
    ScheduleChanged,
    ScheduleError,
    ScheduleNotFound,
    StoreError,
    TaskNotParked,
)
from rota.stores.search_contract import SearchesBusy, SearchTooWide

log = logging.getLogger("rota.web")

MEDIA_TYPE = "application/problem+json"
PLACES = 20
"""So many places where something does not fit are named."""
STORE_AWAY = "The job store cannot be reached now. What was asked may safely be repeated in a moment."
WHO = "Give a valid token (`Authorization: Bearer rota_…`), or log in."
INTERNAL = "Something went wrong here that should not. The server's log has it under this request id."


class Problem(HTTPException):
    """An answer that is an error. `more` are further members of the document."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(status, detail, dict(headers or {}))
        self.kind, self.more = kind, more

    def response(self, request_id: str) -> JSONResponse:
        title = HTTPStatus(self.status_code).phrase
        document = {
            "type": f"urn:rota:{self.kind}",
            "title": title,
            "status": self.status_code,
            "detail": self.detail,
            "request_id": request_id,
        }
        return JSONResponse(document | self.more, self.status_code, self.headers, media_type=MEDIA_TYPE)


class Unknown(Problem):
    """Nobody, or nobody any more. The same words whatever is wrong: who tries learns nothing."""

    def __init__(self) -> None:
        super().__init__(401, "unauthenticated", WHO, headers={"WWW-Authenticate": 'Bearer realm="rota"'})


def problem_of(error: BaseException) -> Problem:
    """The answer to an error. What is not meant for callers is not told to them."""
    match error:
        case Problem():
            return error
        case RequestValidationError():
            return Problem(
                422, "invalid", "What was sent does not fit; `errors` says where.", errors=_places(error)
            )
        case HTTPException():
            return _by_status(error)
        case JobArchived():
            ended = {
                "state": error.summary.state.value,
                "finished_at": error.summary.finished_at.isoformat(),
                "archived_at": error.summary.archived_at.isoformat(),
            }
            return Problem(404, "job-archived", f"{error.summary.words}.", archived=ended)
        case JobNotFound():
            return Problem(404, "job-not-found", "No job has this id. Retention may have removed it.")
        case OperationNotFound():
            return Problem(404, "operation-not-found", "No operation has this id.")
        case GroupNotFound() | ScheduleNotFound() | TokenNotFound() | WorkerNotFound():
            return Problem(404, _slug(error), str(error))
        case KeyConflict() | NotUnique():
            other = str(error.job_id)
            shown = public_id(error.job_id)
            return Problem(409, _slug(error), str(error), key=error.key, job_id=other, public_id=shown)
        case QueueFull():
            return Problem(429, "queue-full", str(error), headers={"Retry-After": "5"})
        case JobError() | ScheduleChanged() | TaskNotParked() | TokenRevoked() | OrderRefused():
            return Problem(409, _slug(error), str(error))
        case EnqueueError() | ScheduleError():
            return Problem(422, _slug(error), str(error))
        case OutOfScope():
            return Problem(
                403, "out-of-scope", "This is about all tenants, and you may ask about one of them only."
            )
        case FilterError():
            return Problem(422, "bad-filter", str(error), word=error.word)
        case SearchTooWide():
            return Problem(422, "search-too-wide", str(error))
        case SearchesBusy():
            return Problem(429, "searches-busy", str(error), headers={"Retry-After": "5"})
        case NotSupported():
            return Problem(501, "not-supported", str(error))
        case StoreError():
            return Problem(503, "store-unavailable", STORE_AWAY, headers={"Retry-After": "1"})
        case TimeoutError():
            words = "The job store took too long. Ask again in a moment, or for less."
            return Problem(503, "too-slow", words, headers={"Retry-After": "1"})
        case _:
            return Problem(500, "internal", INTERNAL)


async def answer(request: Request, error: Exception) -> Response:
    """Exception handler: the problem, with the id of the request; what the operator must know goes into the log."""
    problem, request_id = problem_of(error), request_id_of(request.scope)
    if problem.status_code == 405:
        problem = _not_so(request)
    if problem.status_code >= 500:
        log.error(
            "request %s: %s %r failed: %s: %s",
            request_id,
            request.method,
            request.url.path,
            type(error).__name__,
            error,
            exc_info=error if problem.status_code == 500 else None,
        )
    shown: Callable[[Request, Problem], Response | None] | None = getattr(request.app.state, "show", None)
    return (shown and shown(request, problem)) or problem.response(request_id)


def request_id_of(scope: Any) -> str:
    return str(scope.get("state", {}).get("request_id", "none"))


def _by_status(error: HTTPException) -> Problem:
    """What the framework itself refuses."""
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            return Problem(404, "not-found", "There is nothing at this address.", headers=headers)
        case status if status >= 500:
            return Problem(500, "internal", INTERNAL)
        case status:
            return Problem(status, "refused", str(error.detail), headers=headers)


def _not_so(request: Request) -> Problem:
    """All methods of an address stand in routes of their own, and the framework names those of the first only."""
    here = [route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE]
    allowed = ", ".join(
        sorted({method for route in here for method in getattr(route, "methods", None) or ()})
    )
    return Problem(405, "method-not-allowed", f"This address takes {allowed}.", headers={"Allow": allowed})


def _places(error: RequestValidationError) -> list[dict[str, Any]]:
    """Where it does not fit and why, without the values: they may be secrets."""
    return [
        {"where": ".".join(map(str, found["loc"])), "what": str(found["msg"])}
        for found in error.errors()[:PLACES]
    ]


def _slug(error: BaseException) -> str:
    """JobNotFound -> job-not-found."""
    name = type(error).__name__
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")
