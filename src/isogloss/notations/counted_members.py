"""The grammar of members in their order where their number matters: a rule says what may follow each number of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isogloss.grammar import Loose, Reference, Regex, Repeat, Rule, Term, choice, optional, sequence

NOTHING = Regex(r"[^\x00-\x{10FFFF}]")


def members(
    listed: Sequence[tuple[Term, bool]],
    further: Term | None,
    least: int = 0,
    most: int | None = None,
    *,
    name: str,
    between: Term | None = None,
) -> Term:
    """At least ``least`` and at most ``most`` of the members that are ``listed``, each with whether it is required, and
    ``further`` ones behind them. ``between`` stands between two, ``name`` begins the names of rules.

    `Loose` where further members are counted, for nothing keeps one of them from coming twice.
    """
    return _Members(listed, further, least, most, name, between).from_(0, 0)


class _Members:
    def __init__(
        self,
        listed: Sequence[tuple[Term, bool]],
        further: Term | None,
        least: int,
        most: int | None,
        name: str,
        between: Term | None,
    ) -> None:
        self._listed = listed
        self._further = further
        self._least = least
        self._most = most
        self._name = name
        self._between = between
        self._named: set[str] = set()

    def from_(self, position: int, count: int) -> Term:
        """The members from a position on, behind so many."""
        count = min(count, max(self._least, self._most or 0, 1))
        name = f"{self._name}_{position}_{count}"
        if name in self._named:
            return Reference(name)
        self._named.add(name)
        ways = list(self._ways(position, count))
        return Rule(name, choice(*ways) if ways else NOTHING)

    def _ways(self, position: int, count: int) -> Iterator[Term]:
        if position == len(self._listed):
            yield from self._ends(count)
            return
        member, is_required = self._listed[position]
        later = self._listed[position + 1 :]
        if self._most is None or count + sum(is_needed for _, is_needed in later) < self._most:
            yield sequence(self._behind(member, count), self.from_(position + 1, count + 1))
        if not is_required and (self._further is not None or count + len(later) >= self._least):
            yield self.from_(position + 1, count)

    def _ends(self, count: int) -> Iterator[Term]:
        missing, room = max(self._least - count, 0), None if self._most is None else self._most - count
        if self._further is None or room == 0:
            if not missing:
                yield sequence()
            return
        first = self._behind(self._further, count)
        rest = Repeat(self._behind(self._further, 1), max(missing - 1, 0), None if room is None else room - 1)
        some = sequence(first, rest)
        ending = some if missing else optional(some)
        yield Loose(ending) if missing or room is not None else ending

    def _behind(self, member: Term, count: int) -> Term:
        return member if self._between is None or not count else sequence(self._between, member)
