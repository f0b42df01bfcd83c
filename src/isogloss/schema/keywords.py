"""The keywords of JSON Schema that restrict values, in any of its drafts. All others say something about a schema or
mean nothing; ``$ref`` and ``allOf`` are not listed, for a `SchemaView` has what they lead to among its parts."""

from __future__ import annotations

from isogloss.schema.view import SchemaView

ASSERTIONS = frozenset(
    {
        *("type", "enum", "const", "anyOf", "oneOf", "not", "if", "then", "else", "$dynamicRef", "$recursiveRef"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "format", "contentMediaType", "contentEncoding", "contentSchema"),
        *("items", "prefixItems", "additionalItems", "unevaluatedItems", "minItems", "maxItems", "uniqueItems"),
        *("contains", "minContains", "maxContains"),
        *("properties", "required", "additionalProperties", "patternProperties", "unevaluatedProperties"),
        *("propertyNames", "minProperties", "maxProperties"),
        *("dependentRequired", "dependentSchemas", "dependencies"),
    }
)


def assertions(view: SchemaView) -> frozenset[str]:
    """The keywords that restrict the values of a view, those within its unions aside."""
    return ASSERTIONS.intersection(*[{key for part in view.parts for key in part}])


def lists_values(view: SchemaView) -> bool:
    """Whether nothing but a list of its values, and types, restricts a view."""
    return view.const_values is not None and assertions(view) <= {"enum", "const", "type"}
