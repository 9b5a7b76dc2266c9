"""A mutant: one line of Rota broken on purpose, and the test that must notice."""

from __future__ import annotations

from dataclasses import dataclass


class Unfit(Exception):
    """A mutant that does not fit the code any more."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """What is broken, in words; where; and who notices."""

    name: str
    file: str
    """Below src/rota."""
    old: str
    """Stands in the file exactly once."""
    new: str
    where: str
    """The test's file, below tests."""
    by: str
    """The test that notices. Without a parameter in brackets it is enough that one of its runs turns red."""

    @property
    def test(self) -> str:
        """Its node id, below tests."""
        return f"{self.where}::{self.by}"

    def applied(self, text: str) -> str:
        """The file's text with the broken line; `Unfit` where that line is not there, or not alone."""
        found = text.count(self.old)
        if found != 1 or self.old == self.new:
            raise Unfit(
                f"mutant {self.name!r}: {self.old!r} stands {found} times in src/rota/{self.file}, not once. "
                "Bring the mutant up to date with the line it breaks."
            )
        return text.replace(self.old, self.new)
