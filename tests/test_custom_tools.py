"""Custom tools: free text under a grammar, in every dialect."""

from __future__ import annotations

import pytest

from isogloss.constraints import accepts
from isogloss.dialects import dialect_names, get_dialect
from isogloss.messages import AssistantMessage, Conversation, TextGrammar, Tool, ToolCall, UserMessage

PLAIN = Tool.custom("note", "Keep a note")
CODE = Tool.custom("code", "A code", TextGrammar("regex", r"[a-z]{2,4}\d"))
WORDS = Tool.custom("words", "Some words", TextGrammar("lark", 'start: WORD (" " WORD)*\nWORD: /[a-z]+/'))
ESCAPES = {
    *("hermes", "qwen3", "kimi", "deepseek", "mistral", "llama3", "granite", "phi4"),  # JSON
    *("gemini", "pythonic", "lfm", "olmo3"),  # Python's literals
}
"""Here a string is escaped, so that no grammar of the text itself can stand in it; such turns are verified whole."""

EVERY_DIALECT = pytest.mark.parametrize("name", dialect_names())


def is_accepted(name: str, tool: Tool, text: str) -> bool:
    dialect = get_dialect(name)
    call = ToolCall("", tool.name, {"input": text})
    prompt = dialect.render(Conversation((UserMessage(""),), (tool,))).text
    reasoning = "open" if dialect.starts_in(prompt) == "reasoning" else True
    output = dialect.render_output(AssistantMessage(tool_calls=(call,)), (tool,))
    found = dialect.parse(output, (tool,), starts_in=dialect.starts_in(prompt)).tool_calls
    assert [(made.name, made.arguments) for made in found] == [(tool.name, {"input": text})]
    return accepts(dialect.constraint((tool,), "required", reasoning=reasoning), output).is_accepted


@EVERY_DIALECT
def test_free_text_is_taken_as_it_is(name: str) -> None:
    for text in ("x", "two\nlines", '"quoted" and {braced}', "007", "true"):
        assert is_accepted(name, PLAIN, text)


@EVERY_DIALECT
def test_a_regular_expression_binds_the_text(name: str) -> None:
    assert is_accepted(name, CODE, "abc1")
    assert not is_accepted(name, CODE, "abc")
    assert not is_accepted(name, CODE, "abcde1")


@pytest.mark.parametrize("name", sorted(set(dialect_names()) - ESCAPES))
def test_a_lark_grammar_binds_the_text_where_text_is_written_as_it_is(name: str) -> None:
    assert is_accepted(name, WORDS, "ab cd")
    assert not is_accepted(name, WORDS, "AB 12")
