"""Categories: what kinds of work there are, and which references the jobs of each must carry."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from rota.errors import TaskError, UnknownCategory

Refs: TypeAlias = "tuple[tuple[str, ...], ...]"
"""What must be there: each a choice of names, of which one is enough."""


class Category(NamedTuple):
    """One kind of work."""

    name: str
    purpose: str = ""
    refs: Refs = ()
    """References that its jobs must carry, where the app's rules ask for them."""


STANDARD = (
    Category("ingestion", "fetch, parse and store what comes in", (("connection_id",),)),
    Category("sync", "pull from and push to other systems", (("connection_id",),)),
    Category("recurrence", "make periods and their work", (("recurrence_rule_id",),)),
    Category("orchestration", "carry out steps of a larger plan", (("orchestration_execution_id",),)),
    Category("documents", "scan, index and classify documents", (("document_id",),)),
    Category("notifications", "tell people something", (("recipient_id", "recipient_ids"),)),
    Category("export", "hand out or remove what belongs to a tenant"),
    Category("maintenance", "clean up and archive"),
)
"""Those that every app has."""


class Categories:
    """The categories of one app: the standard ones and its own, by name."""

    def __init__(self, known: Iterable[Category] = STANDARD) -> None:
        self._known = {category.name: category for category in known}

    def __getitem__(self, name: str) -> Category:
        found = self._known.get(name)
        if found is None:
            raise UnknownCategory(name, self._known)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def add(self, name: str, purpose: str = "", refs: Iterable[str | Iterable[str]] = ()) -> Category:
        """Make a category known. The same again is nothing new; another of that name is an error."""
        if isinstance(refs, str):
            raise TaskError(
                f"category {name!r}: refs must be a list of names, not {refs!r}. Write [{refs!r}]."
            )
        choices = tuple((ref,) if isinstance(ref, str) else tuple(ref) for ref in refs)
        if not all(choices) or not all(isinstance(ref, str) and ref for choice in choices for ref in choice):
            raise TaskError(
                f"category {name!r}: refs must be names, or tuples of names of which one is enough."
            )
        made = Category(name, purpose, choices)
        known = self._known.setdefault(name, made)
        if known.refs != made.refs:
            raise TaskError(
                f"category {name!r} is there already, with other references ({_words(known.refs)}). "
                "Give yours another name."
            )
        return known


def _words(refs: Refs) -> str:
    return ", ".join(" or ".join(choice) for choice in refs) or "none"
