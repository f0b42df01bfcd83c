"""A schema as a set of values, in the canonical form of `jsonschema_rs`.

Whatever the draft, and whatever ``allOf``, ``not``, ``if``, ``dependentSchemas`` or ``unevaluatedProperties`` say, the
canonical form is a union of plain shapes, one JSON type each. It resolves ``$id``, ``$anchor``, ``$dynamicRef`` and the
references into a registry. What it leaves open are references (a schema may be recursive), conjunctions with them, and
a ``oneOf`` that would grow too large; `Canonical.resolve` settles the first two and `Canonical.exclusive` the third.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, cast

import jsonschema_rs
from jsonschema_rs import CanonicalSchema
from jsonschema_rs import canonical as forms

from isogloss.errors import SchemaError, SchemaTooComplexError, UnsatisfiableSchemaError
from isogloss.schema import cases, weakening

MAXIMUM_WEAKENINGS = 8
"""Parts outside the canonical form that one document may have before nothing of it is kept."""
MAXIMUM_EXCLUSIONS = 1_024
"""Shapes that telling the branches of one ``oneOf`` apart may come to."""
MAXIMUM_NESTED_EXCLUSIONS = 4
"""``oneOf`` whose branches are themselves a ``oneOf``, and so on: what each says of the next multiplies."""
MAXIMUM_MERGES = 4_000
"""Conjunctions that are merged for one document; each takes up to some milliseconds."""
MAXIMUM_BREADTH = 16
"""Shapes that one of them may come to."""

_DRAFTS = {"draft-04": 4, "draft-06": 6, "draft-07": 7, "2019-09": 19, "2020-12": 20}

Schema = Mapping[str, Any] | bool


class Canonical:
    """One schema document and what its nodes stand for."""

    def __init__(self, schema: Schema, *, registry: Mapping[str, Any] | None = None, formats: bool = True) -> None:
        """
        Args:
            schema: a JSON Schema of draft 4, 6, 7, 2019-09 or 2020-12 (told by ``$schema``, the last by default).
            registry: schemas by URI, for references that leave the document; nothing is ever fetched.
            formats: whether ``format`` asserts.

        Raises:
            SchemaError: it is no JSON Schema, or a reference leads nowhere.
            SchemaTooComplexError: it is over the bounds.
            UnsatisfiableSchemaError: no value satisfies it.
        """
        self._cases, self._wide = cases.survey(schema)
        self.formats = formats
        self.draft = draft_of(schema)
        self.document = schema if isinstance(schema, bool) else dict(schema)
        self.exact = True
        """Whether `root` is the whole document, or more values than it admits."""
        self._resolved: dict[CanonicalSchema, tuple[CanonicalSchema, bool]] = {}
        self._exclusive: dict[CanonicalSchema, tuple[list[CanonicalSchema], bool]] = {}
        self._exclusions_around = 0
        self._merges = 0
        self._settlers = {
            forms.CanonicalKind.REFERENCE: self._follow,
            forms.CanonicalKind.ALL_OF: self._merge,
            forms.CanonicalKind.ONE_OF: self._separate,
            forms.CanonicalKind.NOT: self._invert,
        }
        self._registry = registry or {}
        try:
            self.root = self._canonicalize()
        except jsonschema_rs.ValidationError as error:
            raise SchemaError(_plain(error.message), pointer=_pointer(error.instance_path)) from None
        except (jsonschema_rs.ReferencingError, ValueError) as error:
            raise SchemaError(_plain(str(error))) from None
        if self.root.satisfiability() is forms.Satisfiability.NO:
            raise UnsatisfiableSchemaError("No value satisfies the schema", pointer="")

    def _canonicalize(self) -> CanonicalSchema:
        document = self.document
        if self.draft >= 19:
            document = weakening.with_conditions_as_choices(document)
        if self._cases > cases.FEW_CASES or self._wide:
            document = cases.with_fewer_cases(document)
            most, _ = cases.survey(document)
            if most > cases.MAXIMUM_CASES:
                document = cases.without_conditions(weakening.widenable(document))
                self.exact = False
                most, _ = cases.survey(document)
            if most > cases.MAXIMUM_CASES:
                raise SchemaTooComplexError(
                    f"Expected at most {cases.MAXIMUM_CASES} combinations of alternatives in one place, got more"
                )
        try:
            root = self._canonical_form(document)
        except jsonschema_rs.ValidationError as error:
            if not {"pattern", "patternProperties"} & set(error.instance_path):
                raise
            self.document = weakening.with_strict_patterns(self.document)
            document = weakening.with_strict_patterns(document)
            root = self._canonical_form(document)
        if root.kind is forms.CanonicalKind.RAW:
            document = weakening.without_inner_dialects(document)
            root = self._canonical_form(document)
        for _ in range(MAXIMUM_WEAKENINGS):
            view = root.view()
            if not isinstance(view, forms.RawView):
                return root
            self.exact = False
            document = weakening.widenable(document)
            document = weakening.weaker(document, view.pointer or "")
            root = self._canonical_form(document)
        return self._canonical_form(True)

    def _canonical_form(self, document: dict[str, Any] | bool) -> CanonicalSchema:
        return jsonschema_rs.canonicalize(
            document, draft=self.draft, validate_formats=self.formats, retriever=self._retrieve
        )

    def resolve(self, node: CanonicalSchema) -> tuple[CanonicalSchema, bool]:
        """The node with references followed and conjunctions merged, and whether that is exact.

        Where it is not, what comes back admits every value that the node does and some more.
        """
        settle = self._settlers.get(node.kind)
        if settle is None:
            return node, True
        found = self._resolved.get(node)
        if found is None:
            found = settle(node)
            self._resolved[node] = found
        return found

    def _follow(self, node: CanonicalSchema) -> tuple[CanonicalSchema, bool]:
        seen = set()
        while node.kind is forms.CanonicalKind.REFERENCE:
            uri = cast(forms.ReferenceView, node.view()).uri
            if node in seen:
                raise SchemaError(f"Expected a reference that leads to a schema, got a circle of references at `{uri}`")
            seen.add(node)
            target = node.definition(uri)
            if target is None:
                raise SchemaError(f"Expected a known schema, got a reference to `{uri}`")
            node = target
        return self.resolve(node)

    def _merge(self, node: CanonicalSchema) -> tuple[CanonicalSchema, bool]:
        pending = list(reversed(branches_of(node)))
        merged: CanonicalSchema | None = None
        exact = True
        for _ in range(64):
            if not pending:
                return (merged if merged is not None else node), exact
            branch, branch_exact = self.resolve(pending.pop())
            exact = exact and branch_exact
            if merged is None:
                merged = branch
                continue
            self._merges += 1
            if self._merges > MAXIMUM_MERGES:
                raise SchemaTooComplexError(f"Expected a schema that needs at most {MAXIMUM_MERGES} merges, got more")
            try:
                merged = merged.intersect(branch)
            except forms.CanonicalizationError:
                exact = False
                if branch.kind in _OPAQUE or merged.kind not in _OPAQUE:
                    continue
                merged = branch
                continue
            if merged.kind is forms.CanonicalKind.ALL_OF:
                pending.extend(reversed(branches_of(merged)))
                merged = None
        return branches_of(node)[0], False

    def _separate(self, node: CanonicalSchema) -> tuple[CanonicalSchema, bool]:
        branches, exact = self.exclusive(node)
        if not exact:
            return node, True
        try:
            union = functools.reduce(lambda first, second: first.union(second), branches)
        except forms.CanonicalizationError:
            return node, True
        return (union, True) if union.kind not in _OPAQUE else (node, True)

    def _invert(self, node: CanonicalSchema) -> tuple[CanonicalSchema, bool]:
        inner, exact = self.resolve(cast(forms.NotView, node.view()).schema)
        try:
            inverse = inner.negate() if exact else node
        except forms.CanonicalizationError:
            return node, True
        return (inverse, True) if inverse.kind not in _OPAQUE else (node, True)

    def exclusive(self, node: CanonicalSchema) -> tuple[list[CanonicalSchema], bool]:
        """The branches of a ``oneOf``, made such that no value is in two of them, and whether that is exact."""
        found = self._exclusive.get(node)
        if found is None:
            if self._exclusions_around >= MAXIMUM_NESTED_EXCLUSIONS:
                return branches_of(node), False
            self._exclusions_around += 1
            found = self._exclusive[node] = self._made_exclusive(branches_of(node))
            self._exclusions_around -= 1
        return found

    def _made_exclusive(self, branches: list[CanonicalSchema]) -> tuple[list[CanonicalSchema], bool]:
        resolved = [self.resolve(branch) for branch in branches]
        exact = all(is_exact for _, is_exact in resolved)
        nodes = [node for node, _ in resolved]
        budget = MAXIMUM_EXCLUSIONS
        result = []
        for i, node in enumerate(nodes):
            only = node
            for j, (other, other_exact) in enumerate(resolved):
                # what admits too much would take too much away
                if i == j or not other_exact or only.kind is forms.CanonicalKind.FALSE:
                    continue
                size = _breadth(only)
                budget -= size
                if budget < 0 or size > MAXIMUM_BREADTH:
                    return nodes, False
                try:
                    only, is_exact = self.resolve(only.subtract(other))
                except forms.CanonicalizationError:
                    is_exact = False
                exact = exact and is_exact
            result.append(only)
        return result, exact

    def finite_strings(self, node: CanonicalSchema) -> list[str] | None:
        """The strings that a node admits where they are listed, else None."""
        resolved, is_exact = self.resolve(node)
        if not is_exact:
            return None
        view = resolved.view()
        if isinstance(view, forms.ConstView):
            return [view.value] if isinstance(view.value, str) else []
        if isinstance(view, forms.EnumView):
            return [value for value in view.values if isinstance(value, str)]
        return [] if isinstance(view, forms.FalseView) else None

    def validator(self, node: CanonicalSchema) -> jsonschema_rs.Validator:
        """A validator of the values that the node admits; of the document itself for its root."""
        schema: Any = self.document if node == self.root else node.to_json_schema()
        return jsonschema_rs.validator_for(schema, validate_formats=self.formats, retriever=self._retrieve)

    def _retrieve(self, uri: str) -> Any:
        """What a reference outside the document names; never fetched."""
        for name in (uri, uri.rstrip("#"), uri + "#"):
            if name in self._registry:
                return self._registry[name]
        raise ValueError(f"Expected a reference into the document or the registry, got `{uri}`")


_OPAQUE = (forms.CanonicalKind.RAW, forms.CanonicalKind.NOT, forms.CanonicalKind.ONE_OF)


def _breadth(node: CanonicalSchema) -> int:
    return len(branches_of(node)) if node.kind is forms.CanonicalKind.ANY_OF else 1


def branches_of(node: CanonicalSchema) -> list[CanonicalSchema]:
    """The branches of a conjunction or a choice."""
    return cast(forms.AllOfView, node.view()).branches


def draft_of(schema: Schema) -> int:
    """The draft that ``$schema`` names, 2020-12 for none and for a dialect of one's own."""
    uri = schema.get("$schema") if not isinstance(schema, bool) else None
    if isinstance(uri, str):
        for name, draft in _DRAFTS.items():
            if f"json-schema.org/{name}" in uri or f"json-schema.org/draft/{name}" in uri:
                return draft
    return 20


def _pointer(path: list[Any]) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _plain(message: str) -> str:
    return message if len(message) <= 500 else message[:500] + "..."
