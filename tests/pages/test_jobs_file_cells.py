"""The file of jobs in a spreadsheet: nothing that a stranger wrote is computed there."""

from __future__ import annotations

import csv
import io

import pytest

from build import a_job, claim, failed
from rota._core.failure import ErrorClass
from rota.stores.memory import MemoryStore
from rota.web.pages.jobs_export import FORMULA
from web_kit import served

COMPUTED = ("=", "+", "-", "@", "\t", "\r")


@pytest.mark.parametrize("sign", COMPUTED, ids=repr)
async def test_no_cell_begins_with_what_a_spreadsheet_computes(sign):
    text = f"{sign}HYPERLINK(A1)"
    marked = {
        "tenant": text, "subject": text, "external_id": text, "tags": (text,), "category": text, "queue": text,
        "correlation_id": text, "created_by": text,
    }  # fmt: skip
    async with served(MemoryStore(), pages=True) as site:
        await site.store.enqueue([a_job("mail", {text: text}, **marked)])
        [job] = await claim(site.store)
        await site.store.settle([failed(job, ErrorClass.NON_RETRYABLE, text, now=await site.store.now())])
        answer = await (await site.browser("viewer")).get("/jobs/export.csv")

    [row] = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert [name for name, cell in row.items() if cell.startswith(COMPUTED)] == []
    assert [name for name, cell in row.items() if cell.startswith(f"'{sign}")] == [
        "queue", "tenant", "subject", "external_id", "correlation_id", "tags", "category", "created_by",
        "error_message",
    ]  # fmt: skip


def test_the_signs_are_those_that_are_known():
    assert set(FORMULA) == set(COMPUTED)
