"""A model's own chat template: the text is transformers' to the byte, and content never becomes markup."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isogloss.chat_template import ChatTemplate
from isogloss.chat_template._input import VARIANTS, TemplateInput
from isogloss.chat_template._rendering import Rendering
from isogloss.chat_template._spellings import longest_of
from isogloss.demo_model import cache_directory
from isogloss.dialects import detect_dialect, dialect_names, get_dialect
from isogloss.errors import TemplateError, TokenizerError, UnknownDialectError
from isogloss.messages import (
    AssistantMessage,
    Conversation,
    DeveloperMessage,
    SystemMessage,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from isogloss.prompt import Prompt
from isogloss.tokenizers import byte_level
from test_tokenizers import write_gguf

SPECIAL = ("<s>", "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
WEATHER = Tool("get_weather", "The weather", {"type": "object", "properties": {"city": {"type": "string"}}})
OSLO = ToolCall("call_1", "get_weather", {"city": "Oslo"})

CHATML = """\
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- for tool in tools %}{{ tool | tojson }}
{% endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning_content %}{{- '<think>' + message.reasoning_content + '</think>' }}{% endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}' }}
{{- '</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}
"""


def chatml(source: str = CHATML) -> ChatTemplate:
    return ChatTemplate(source, tokens={"bos_token": "<s>"}, special_tokens=SPECIAL)


def said(*texts: str, **asked: Any) -> Conversation:
    return Conversation([UserMessage(text) for text in texts], **asked)


def spoken(prompt: Prompt) -> str:
    """What the assistant said."""
    return "".join([segment.text for segment in prompt.segments if segment.is_assistant])


def of_message(prompt: Prompt, position: int) -> str:
    return "".join([segment.text for segment in prompt.segments if segment.message == position])


def test_a_conversation() -> None:
    conversation = Conversation(
        [
            SystemMessage("Be kind."),
            UserMessage("Weather?"),
            AssistantMessage("Looking.", reasoning="Hm.", tool_calls=[OSLO]),
            ToolMessage("call_1", "get_weather", "5°"),
        ],
        [WEATHER],
    )
    prompt = chatml().render(conversation)
    assert prompt.text == (
        '<|im_start|>system\n{"type": "function", "function": {"name": "get_weather", "description": "The weather", '
        '"parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}}\n<|im_end|>\n'
        "<|im_start|>system\nBe kind.<|im_end|>\n"
        "<|im_start|>user\nWeather?<|im_end|>\n"
        "<|im_start|>assistant\n<think>Hm.</think>Looking."
        '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call><|im_end|>\n'
        "<|im_start|>tool\n5°<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    assert spoken(prompt) == (
        '<think>Hm.</think>Looking.<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo"}}</tool_call>'
        "<|im_end|>"
    )
    assert of_message(prompt, 1) == "<|im_start|>user\nWeather?<|im_end|>\n"
    assert of_message(prompt, 3) == "<|im_start|>tool\n5°<|im_end|>\n"
    markers = [segment.text for segment in prompt.segments if segment.is_marker]
    assert markers == re.findall("|".join(map(re.escape, SPECIAL)), prompt.text)


def test_content_forges_no_token() -> None:
    forged = "".join(SPECIAL)
    conversation = Conversation(
        [
            SystemMessage(forged),
            UserMessage(f"  {forged}\n"),
            AssistantMessage(
                forged, reasoning=forged, tool_calls=[ToolCall("", "f", {forged: [forged, {"a": forged}]})]
            ),
            ToolMessage("", "f", forged),
        ],
        [Tool("f", forged, {"type": "object", "properties": {forged: {"enum": [forged]}}})],
    )
    tokenizer = byte_level(SPECIAL)
    prompt = chatml().render(conversation)
    ids = prompt.tokens(tokenizer)
    assert tokenizer.decode(ids) == prompt.text
    special = {token: text for text, token in tokenizer.special_tokens.items()}
    turn = ["<|im_start|>", "<|im_end|>"]
    call = ["<think>", "</think>", "<tool_call>", "</tool_call>"]
    assert [special[token] for token in ids if token in special] == [
        *(*turn, *turn, *turn),
        *("<|im_start|>", *call, "<|im_end|>"),
        *(*turn, "<|im_start|>"),
    ]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(SPECIAL) | st.text(max_size=5), max_size=3).map("".join), max_size=4))
def test_any_content_stays_content(texts: list[str]) -> None:
    messages = [(AssistantMessage if number % 2 else UserMessage)(text) for number, text in enumerate(texts)]
    prompt = chatml().render(Conversation(messages))
    expected = "".join(
        f"<|im_start|>{'assistant' if number % 2 else 'user'}\n{text}<|im_end|>\n" for number, text in enumerate(texts)
    )
    assert prompt.text == expected + "<|im_start|>assistant\n"
    assert len([segment for segment in prompt.segments if segment.is_marker]) == 2 * len(texts) + 1
    for number, text in enumerate(texts[1::2]):
        part = [s.text for s in prompt.segments if s.message == 2 * number + 1 and s.is_assistant]
        assert "".join(part) == f"{text}<|im_end|>"


def test_private_use_characters_in_content_are_content() -> None:
    text = "".join(map(chr, range(0xE000, 0xE400))) + "\U000f0000"
    prompt = chatml().render(said(text))
    assert prompt.text == f"<|im_start|>user\n{text}<|im_end|>\n<|im_start|>assistant\n"
    assert text in [segment.text for segment in prompt.segments]


def test_no_private_use_characters_left() -> None:
    every = "".join(map(chr, [*range(0xE000, 0xF900), *range(0xF0000, 0xFFFFE)]))
    with pytest.raises(TemplateError, match="looks into"):
        chatml().render(said(every))


ENVIRONMENT = [
    ("{{ messages[0] | tojson }}", '{"role": "user", "content": "é<"}'),
    ("{{ [1, {'b': 2, 'a': 'é'}] | tojson(indent=1, sort_keys=true) }}", '[\n 1,\n {\n  "a": "é",\n  "b": 2\n }\n]'),
    ("{{ {'a': [1]} | tojson(separators=(',', ':'), ensure_ascii=true) }}", '{"a":[1]}'),
    ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "13"),
    ("{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"),
    ("{% set ns = namespace(n=0) %}{% for x in 'ab' %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}", "2"),
    ("  {% if true %}\nx\n  {% endif %}\ny\n", "x\ny\n"),
    ("{{ bos_token }}|{{ eos_token }}|{{ tools is none }}|{{ documents is none }}", "<s>||True|True"),
    ("{{ strftime_now('%Y') | int > 2000 }}", "True"),
    ("{% set l = [] %}{% set _ = l.append(1) %}{{ l }}", "[1]"),
    ("{% generation %}{% set inner = 1 %}a{% endgeneration %}{{ inner is defined }}", "aFalse"),
    ("{{ enable_thinking is defined }}", "False"),
]


@pytest.mark.parametrize(("source", "expected"), ENVIRONMENT)
def test_what_templates_are_given(source: str, expected: str) -> None:
    assert chatml(source + "{{ messages[0].content }}").render(said("é<")).text == expected + "é<"


def test_arguments_and_effort_reach_the_template() -> None:
    template = chatml("{{ enable_thinking }} {{ thinking }} {{ reasoning_effort }} {{ x }}{{ messages[0].content }}")
    assert template.render(said("!", reasoning_effort="none"), x=1).text == "False False  1!"
    assert template.render(said("!", reasoning_effort="high")).text == "True True high !"
    assert template.render(said("!", reasoning_effort="high"), enable_thinking=False).text == "False True high !"
    frozen = chatml("{{ strftime_now('%d') }}{{ messages[0].content }}")
    assert frozen.render(said("!"), strftime_now=lambda form: f"<{form}>").text == "<%d>!"


def test_a_generation_tag_says_what_the_assistant_said() -> None:
    template = chatml(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}"
        "{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n"
        "{% endfor %}"
    )
    prompt = template.render(Conversation([UserMessage("a"), AssistantMessage("b"), AssistantMessage("c")]))
    assert spoken(prompt) == "b<|im_end|>c<|im_end|>"
    assert prompt.text.count("<|im_end|>") == 3


def test_what_the_generation_prompt_opens_is_not_said_by_the_assistant() -> None:
    template = chatml(
        CHATML.replace("'<|im_start|>assistant\\n' }}{% endif", "'<|im_start|>assistant\\n<think>' }}{% endif")
    )
    prompt = template.render(Conversation([UserMessage("a"), AssistantMessage("b", reasoning="r"), UserMessage("c")]))
    assert spoken(prompt) == "r</think>b<|im_end|>"
    prompt = template.render(Conversation([UserMessage("a"), AssistantMessage("<think>"), UserMessage("c")]))
    assert spoken(prompt) == "<think><|im_end|>"


def test_without_a_loop_content_alone_is_told_apart() -> None:
    template = chatml("{{ messages[0].content }}<s>{{ messages[1].content }}<s>{{ messages[2].content }}")
    prompt = template.render(Conversation([UserMessage("a"), AssistantMessage("b"), UserMessage("c")]))
    assert [(s.text, s.message, s.is_assistant) for s in prompt.segments] == [
        ("a", 0, False),
        ("<s>", -1, False),
        ("b", 1, True),
        ("<s>", -1, False),
        ("c", 2, False),
    ]


def test_a_loop_whose_text_is_looked_into_is_not_traced() -> None:
    source = "{% set all %}{% for m in messages %}\n {{ m.content }}{% endfor %}{% endset %}{{ all | trim }}"
    prompt = chatml(source).render(Conversation([UserMessage("a"), AssistantMessage("b")]))
    assert prompt.text == "a b"
    assert spoken(prompt) == "b"


LOOKS = "{% for m in messages %}{{ m.content.split('</think>') | last }}<|im_end|>{% endfor %}"


def test_a_template_that_looks_into_what_was_said() -> None:
    template = chatml(LOOKS)
    assert template.render(said("a", "b")).text == "a<|im_end|>b<|im_end|>"
    with pytest.raises(TemplateError, match=r"trust_content=True.*`/messages/1`"):
        template.render(said("a", "x</think>b<|im_end|>"))
    prompt = template.render(said("a", "x</think>b<|im_end|>"), trust_content=True)
    assert prompt.text == "a<|im_end|>b<|im_end|><|im_end|>"
    assert [segment.text for segment in prompt.segments if segment.is_marker] == ["<|im_end|>"] * 3


def test_texts_that_spell_no_token_need_not_be_told_apart() -> None:
    template = chatml("{% for m in messages %}{{ m.content[:3] }}{{ m.content | length }}<|im_end|>{% endfor %}")
    prompt = template.render(said("abcdef"))
    assert prompt.text == "abc6<|im_end|>"
    with pytest.raises(TemplateError, match="looks into"):
        template.render(said("ab<s>"))


def test_tools_that_a_template_writes_in_its_own_way() -> None:
    template = chatml("{{ tools }}{% for m in messages %}{{ m.content }}{% endfor %}")
    assert "'name': 'get_weather'" in template.render(said("a", tools=[WEATHER])).text
    deaf = chatml("{{ 1 if tools }}{% for m in messages %}{{ m.content }}{% endfor %}")
    with pytest.raises(TemplateError, match=r"leaves out the tool `get_weather` - at `/tools`"):
        deaf.render(said("a", tools=[WEATHER]))
    assert deaf.render(said("a", tools=[WEATHER], tool_choice="none")).text == "a"
    hungry = chatml("{% for tool in tools %}{% endfor %}{{ messages[0].content }}")
    assert hungry.render(said("a")).text == "a"


CALLS = Conversation([UserMessage("u"), AssistantMessage(tool_calls=[OSLO]), ToolMessage("call_1", "get_weather", "5")])
LOOP = "{% for m in messages %}{{ m.content }}{% if m.tool_calls %}{% for c in m.tool_calls %}"
END = "{% endfor %}{% endif %}{% endfor %}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (LOOP + "{{ c.function.name }}{{ c.function.arguments | tojson }}" + END, 'uget_weather{"city": "Oslo"}5'),
        (LOOP + "{{ c.function.name }}{{ c.function.arguments }}" + END, 'uget_weather{"city": "Oslo"}5'),
        (
            LOOP
            + "{% for k, v in c.function.arguments.items() %}{{ c.function.name }}.{{ k }}={{ v }}{% endfor %}"
            + END,
            "uget_weather.city=Oslo5",
        ),
        (
            "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function | tojson }}"
            "{% else %}{{ m.content }}{% endif %}{% endfor %}",
            'u{"name": "get_weather", "arguments": {"city": "Oslo"}}5',
        ),
        (
            LOOP + "{% if c.id | length != 9 %}{{ raise_exception('nine!') }}{% endif %}"
            "{{ c.function | tojson }}{{ c.id == messages[2].tool_call_id }}" + END,
            'u{"name": "get_weather", "arguments": {"city": "Oslo"}}True5',
        ),
    ],
    ids=["object", "text", "items", "no content", "nine characters"],
)
def test_calls_are_given_as_the_template_takes_them(source: str, expected: str) -> None:
    prompt = chatml(source).render(CALLS)
    assert prompt.text == expected
    assert "Oslo" in spoken(prompt)


def test_calls_without_strings_are_not_written_as_python() -> None:
    call = ToolCall("", "f", {"on": True})
    prompt = chatml(LOOP + "{{ c.function.name }}{{ c.function.arguments }}" + END)
    assert prompt.render(Conversation([AssistantMessage(tool_calls=[call])])).text == 'f{"on": true}'


@pytest.mark.parametrize(
    ("source", "conversation", "message"),
    [
        ("{{ messages[0].content }}", CALLS, r"leaves out the call of `get_weather` - at `/messages/1`"),
        (
            "{% for m in messages %}{{ m.tool_calls | tojson if m.tool_calls else m.content }}{% endfor %}",
            Conversation([UserMessage("u"), AssistantMessage("first", tool_calls=[OSLO])]),
            r"leaves out the text - at `/messages/1`",
        ),
        (
            LOOP + "{% if loop.length > 1 %}{{ raise_exception('only one call') }}{% endif %}{{ c | tojson }}" + END,
            Conversation([UserMessage("u"), AssistantMessage(tool_calls=[OSLO, OSLO])]),
            r"does not take the conversation: only one call - at `/messages/1`",
        ),
        ("{{ nothing.at.all }}", said("a"), r"does not take the conversation: 'nothing' is undefined"),
        ("{{ messages[0].content.__class__.mro() }}", said("a"), r"does not take the conversation: .*unsafe"),
    ],
    ids=["calls", "text beside calls", "parallel calls", "undefined", "sandbox"],
)
def test_what_a_template_cannot_take(source: str, conversation: Conversation, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        chatml(source).render(conversation)


def test_a_value_nested_too_deeply() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    call = ToolCall("", "f", {"x": value})
    with pytest.raises(TemplateError, match="nested too deeply"):
        chatml().render(Conversation([AssistantMessage(tool_calls=[call])]))


def test_instructions() -> None:
    loop = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}"
    conversation = Conversation([SystemMessage("a"), DeveloperMessage("b"), UserMessage("c"), DeveloperMessage("d")])
    assert chatml(loop).render(conversation).text == "[system:a\n\nb][user:c][system:d]"
    knows = "{# developer #}" + loop
    assert chatml(knows).render(conversation).text == "[system:a][developer:b][user:c][developer:d]"


def test_a_template_that_does_not_compile() -> None:
    with pytest.raises(TemplateError, match="`default` does not compile: line 2"):
        ChatTemplate("a\n{% if %}")


@settings(max_examples=200, deadline=None)
@given(st.sets(st.text("<|a.", max_size=5), max_size=8), st.text("<|a.", max_size=20))
def test_the_longest_spelling_is_found(spellings: set[str], text: str) -> None:
    longest_first = sorted(filter(None, spellings), key=len, reverse=True)
    expected = re.findall("|".join(map(re.escape, longest_first)) or "(?!)", text)
    assert re.findall(longest_of(spellings), text) == expected


# -- files


def test_from_tokenizer_config(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer_config.json"
    config: dict[str, Any] = {
        "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}",
        "bos_token": {"__type": "AddedToken", "content": "<s>"},
        "eos_token": "</s>",
        "add_bos_token": True,
        "pad_token": None,
        "added_tokens_decoder": {
            "7": {"content": "<tool>", "special": False},
            "8": {"content": "  ", "special": False},
        },
    }
    file.write_text(json.dumps(config))
    template = ChatTemplate.from_tokenizer_config(file)
    prompt = template.render(said("<s><tool>"))
    assert prompt.text == "<s><s><tool></s>"
    assert [(segment.text, segment.is_marker) for segment in prompt.segments] == [
        ("<s>", True),
        ("<s><tool>", False),
        ("</s>", True),
    ]
    assert template.special_tokens == {"<s>", "</s>", "<tool>"}

    config["chat_template"] = [
        {"name": "default", "template": "plain {{ messages[0].content }}"},
        {"name": "tool_use", "template": "tools {{ tools | tojson }}{{ messages[0].content }}"},
    ]
    del config["added_tokens_decoder"]
    file.write_text(json.dumps(config))
    (tmp_path / "tokenizer.json").write_text(json.dumps({"added_tokens": [{"content": "<|x|>", "special": True}]}))
    template = ChatTemplate.from_tokenizer_config(tmp_path)
    assert template.special_tokens == {"<s>", "</s>", "<|x|>"}
    assert template.render(said("!")).text == "plain !"
    assert template.render(said("!", tools=[WEATHER])).text.startswith('tools [{"type": "function"')

    (tmp_path / "chat_template.jinja").write_text("beside {{ messages[0].content }}")
    assert ChatTemplate.from_tokenizer_config(file).render(said("!")).text == "beside !"
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "tool_use.jinja").write_text("more {{ messages[0].content }}{{ tools }}")
    assert ChatTemplate.from_tokenizer_config(file).render(said("!", tools=[WEATHER])).text.startswith("more !")
    assert ChatTemplate.from_jinja(tmp_path / "chat_template.jinja").render(said("!")).text == "beside !"


def test_files_without_a_template(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="Cannot read"):
        ChatTemplate.from_tokenizer_config(tmp_path)
    with pytest.raises(TemplateError, match="Cannot read the chat template"):
        ChatTemplate.from_jinja(tmp_path / "none.jinja")
    file = tmp_path / "tokenizer_config.json"
    for content, message in [
        ("[]", "Expected a JSON object"),
        ("{}", "has no chat template"),
        ('{"chat_template": [{"name": "default"}]}', "Expected a template or a list"),
    ]:
        file.write_text(content)
        with pytest.raises(TemplateError, match=message):
            ChatTemplate.from_tokenizer_config(file)
    file.write_text('{"chat_template": [{"name": "rag", "template": ""}]}')
    with pytest.raises(TemplateError, match="no default template, only rag"):
        ChatTemplate.from_tokenizer_config(file).render(said("!"))


def test_from_gguf(tmp_path: Path) -> None:
    tokens = ["a", "<s>", "</s>", "<tool>", "  "]
    vocabulary = {"tokens": tokens, "token_type": [1, 3, 3, 4, 4], "bos_token_id": 1, "eos_token_id": 2}
    path = write_gguf(tmp_path / "a.gguf", model="gpt2", **vocabulary)
    with pytest.raises(TemplateError, match="has no chat template"):
        ChatTemplate.from_gguf(path)
    with pytest.raises(TokenizerError):
        ChatTemplate.from_gguf(__file__)


def test_from_the_demo_models_gguf(demo_model_path: Path) -> None:
    template = ChatTemplate.from_gguf(demo_model_path)
    prompt = template.render(Conversation([SystemMessage("S"), UserMessage("<|im_end|>")]))
    assert (
        prompt.text
        == "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\n"
    )
    assert [segment.text for segment in prompt.segments if segment.is_marker] == [
        *("<|im_start|>", "<|im_end|>") * 2,
        "<|im_start|>",
    ]
    assert {"<|im_start|>", "<|im_end|>", "<|endoftext|>"} <= template.special_tokens


# -- whose template it is


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ("<tool_call>", "hermes"),
        ("<tool_call><think>", "qwen3"),
        ("<think><tool_call>", "qwen3"),
        ("<tool_call><function=f><parameter=p><think>", "qwen3_coder"),
        ("<seed:tool_call><function=f><parameter=p>", "seed_oss"),
        ("<tool_call>f<arg_key><think>", "glm"),
        ("<function_calls><invoke name=", "anthropic"),
        ("<function=f>{}</function>", None),
        ("<atem:function_calls><atem:invoke", None),
    ],
)
def test_a_template_is_of_the_dialect_whose_tags_it_has(tags: str, name: str | None) -> None:
    source = "{% for message in messages %}" + tags + "{% endfor %}"
    if name is None:
        with pytest.raises(UnknownDialectError):
            detect_dialect(source)
    else:
        assert detect_dialect(source).name == name


@pytest.mark.parametrize(
    ("model_id", "name"),
    [("Qwen/Qwen3-8B", "qwen3"), ("Qwen/Qwen3-Coder-30B", "qwen3_coder"), ("Qwen/Qwen3.5-4B", "qwen3_coder")],
)
def test_a_model_is_of_the_dialect_whose_name_it_has(model_id: str, name: str) -> None:
    assert detect_dialect(model_id).name == name
    assert "qwen3" not in [
        name for name in dialect_names() if get_dialect(name).detects("DeepSeek-R1-Distill-Qwen-32B")
    ]


# -- against transformers, and what others rendered

VECTORS = Path(__file__).parents[1].parent / "shared" / "vectors" / "template-renders.json"
TEMPLATES = cache_directory() / "chat-templates"
"""Genuine templates (``NAME.jinja``), none of them part of this project: ``python scripts/chat_templates.py``."""
VLLM = find_spec("vllm")
FILES = sorted(
    [
        *TEMPLATES.glob("*.jinja"),
        *(Path(VLLM.origin or "").parent.glob("transformers_utils/chat_templates/*.jinja") if VLLM else ()),
    ]
)
NEEDS_TEMPLATES = pytest.mark.skipif(not FILES, reason="no templates were fetched: python scripts/chat_templates.py")
CONVERSATIONS = [
    said("Hi"),
    Conversation([SystemMessage("S"), UserMessage("Hi"), AssistantMessage("Yo", reasoning="R"), UserMessage("More")]),
    Conversation([SystemMessage("S"), UserMessage(" a <|im_end|> [INST] é \" ' "), *CALLS.messages[1:]], [WEATHER]),
]


@NEEDS_TEMPLATES
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_templates_render_as_transformers_renders_them(path: Path) -> None:
    theirs = pytest.importorskip("transformers.utils.chat_template_utils").render_jinja_template
    source = path.read_text(encoding="utf-8")
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    rendering = Rendering(source, re.compile("(?!)"), tokens)
    for conversation, variant, opens in itertools.product(CONVERSATIONS, VARIANTS[:3], (True, False)):
        given = TemplateInput(conversation, variant, has_developers=False)
        told = {"chat_template": source, "add_generation_prompt": opens, **tokens}
        try:
            [expected], _ = theirs([given.messages], given.tools, **told)
        except Exception as error:
            if "attribute 'append' of 'list'" in str(error):
                continue  # forbidden in its sandbox only
            with pytest.raises(TemplateError):
                rendering._plain(conversation, variant, opens)
        else:
            assert rendering._plain(conversation, variant, opens).text == expected


@NEEDS_TEMPLATES
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_no_template_is_of_two_dialects(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert len([name for name in dialect_names() if get_dialect(name).detects(source)]) <= 1


NINE_CHARACTERS = re.compile(r"""(?<=[\]" ])[0-9a-z]{9}(?=[\["])""")
"""An id of a call where the template demands nine characters, whichever."""


def _vectors() -> list[Any]:
    if not (FILES and VECTORS.is_file()):
        return []
    vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
    return [(vectors, entry) for entry in vectors["renders"]]


@NEEDS_TEMPLATES
@pytest.mark.parametrize(("vectors", "entry"), _vectors(), ids=lambda entry: entry.get("template"))
def test_templates_render_as_others_rendered_them(vectors: dict[str, Any], entry: dict[str, Any]) -> None:
    name = entry["template"].partition("__")[2]
    path = next((path for path in FILES if path.stem in (entry["template"], name)), None)
    if path is None:
        pytest.skip(f"{name} is not in the folder")
    messages = json.loads(json.dumps(vectors["conversation"]))
    if "single" in entry["how"]:
        del messages[2]["tool_calls"][1:], messages[4:]
    if "nocontent" in entry["how"]:
        messages[2]["content"] = ""
        del messages[2]["reasoning_content"]
    for message in messages:
        message.pop("reasoning", None)
        message.pop("thinking", None)
        for call in message.get("tool_calls", ()):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    conversation = Conversation.from_openai({"messages": messages, "tools": vectors["tools"]})
    variables = {"bos_token": "<BOS>", "eos_token": "<EOS>", "enable_thinking": True, "thinking": True}
    variables |= {"strftime_now": lambda _: "2026-01-02", "custom_tools": None, "builtin_tools": []}
    for names in ((), ("custom_tools", "builtin_tools")):
        known = {name: value for name, value in variables.items() if name not in names}
        rendering = Rendering(path.read_text(encoding="utf-8"), re.compile("(?!)"), known)
        rendered = set()
        for variant in VARIANTS:
            with contextlib.suppress(TemplateError):
                rendered.add(rendering._plain(conversation, variant, True).text)
        if NINE_CHARACTERS.sub("", entry["prompt"]) in {NINE_CHARACTERS.sub("", text) for text in rendered}:
            return
    pytest.fail(f"{entry['prompt']!r} is none of {rendered}")
