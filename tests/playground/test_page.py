"""What a person does on the page."""

from __future__ import annotations

import json

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from isogloss.chat import Chat
from isogloss.dialects import dialect_names, get_dialect
from isogloss.engines.scripted import Script, ScriptedEngine
from isogloss.messages import AssistantMessage, Tool, ToolCall
from isogloss.server import ApiKey
from server.conftest import Served, serving
from server.hold import Hold

from .conftest import ADVICE, ANSWER, CALL, OUTPUT, REASONING, RESULT, SCREENS, SCREENSHOTS, SKY, TEXT, OpenPage

pytestmark = pytest.mark.xdist_group("chromium")

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}
LOOSE = {"type": "object", "properties": {"sky": {"type": "string", "enum": ["sunny", "cloudy"]}}}


def give_tools(page: Page) -> None:
    page.click("#tab-setup")
    page.fill("#tools", json.dumps([WEATHER], indent=2))
    expect(page.locator("#tools-note")).to_have_text("get_weather")
    page.click("#tab-chat")


def ask_for_weather(page: Page) -> None:
    give_tools(page)
    page.fill("#message", "What will the weather be in Paris?")
    page.press("#message", "Enter")
    expect(page.locator("#result-text")).to_be_visible()


def texts(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def test_the_page_comes_from_the_package_under_a_strict_policy(served: Served) -> None:
    answer = httpx.get(served.url, trust_env=False)
    assert answer.status_code == 200
    assert answer.headers["content-security-policy"].startswith("default-src 'self'; ")
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert (
        httpx.get(f"{served.url}/playground/app.js", trust_env=False)
        .headers["content-type"]
        .startswith("text/javascript")
    )
    for wrong in ("nothing.js", "..%2f__init__.py", "index.html/x"):
        assert httpx.get(f"{served.url}/playground/{wrong}", trust_env=False).status_code == 404


def test_signs_of_control_tokens_are_drawn_whatever_fonts_there_are(open_page: OpenPage) -> None:
    signs = sorted({sign for name in dialect_names() for sign in _sample(name) if ord(sign) > 126})
    assert {"｜", "▁"} <= set(signs)
    page = open_page()
    drawn = page.evaluate(DRAWN, [*signs, "\ufdd0"])
    missing = drawn.pop()
    assert [sign for sign, pixels in zip(signs, drawn, strict=True) if pixels in (missing, "")] == []


def _sample(name: str) -> str:
    return get_dialect(name).render_output(AssistantMessage(tool_calls=(ToolCall("call_1", "f", {}),)), (Tool("f"),))


DRAWN = """async (signs) => {
  const font = `40px ${getComputedStyle(document.querySelector("#raw")).fontFamily}`;
  await document.fonts.load(font, signs.join(""));
  const canvas = new OffscreenCanvas(60, 60);
  const context = canvas.getContext("2d");
  context.font = font;
  return signs.map((sign) => {
    context.clearRect(0, 0, 60, 60);
    context.fillText(sign, 5, 45);
    const pixels = context.getImageData(0, 0, 60, 60).data;
    return pixels.some(Boolean) ? pixels.join() : "";
  });
}"""
"""The pixels of each sign in the page's font, nothing for one that leaves none."""


@pytest.mark.parametrize(
    ("title", "asked", "answered"),
    [
        ("Ask a question", "No tools", TEXT),
        ("Let it call a tool", "Tools: get_weather", TEXT),
        ("Ask for JSON by a schema", "No tools · answer by the schema", ADVICE),
    ],
)
def test_an_empty_chat_begins_with_an_example(
    open_page: OpenPage, served: Served, title: str, asked: str, answered: str
) -> None:
    page = open_page()
    page.click(f"#examples button:has-text('{title}')")
    expect(page.locator("#log .turn.assistant")).to_contain_text(answered)
    expect(page.locator("#asked")).to_have_text(asked)
    expect(page.locator("#examples")).to_be_hidden()
    prompt = served.engine.requests[-1].prompt
    assert ("<tools>" in prompt, '"advice"' in prompt) == ("Tools" in asked, "schema" in asked)
    page.click("#clear")
    expect(page.locator("#examples")).to_be_visible()


def test_an_example_leaves_what_the_reader_wrote(open_page: OpenPage, served: Served) -> None:
    page = open_page()
    page.click("#tab-setup")
    page.click("#tools-example")
    own = page.input_value("#tools").replace("The weather forecast", "What my window shows")
    page.fill("#tools", own)
    expect(page.locator("#tools-example")).to_be_hidden()
    page.click("#tab-chat")
    with page.expect_request("**/playground/api/chat") as asked:
        page.click("#examples button:has-text('call a tool')")
    assert asked.value.post_data_json["tool_choice"] == "required"
    expect(page.locator("#log .turn.assistant")).to_contain_text(TEXT)
    expect(page.locator("#result-text")).to_be_visible()
    expect(page.locator("#choice")).to_have_value("auto")
    assert page.input_value("#tools") == own
    assert "What my window shows" in served.engine.requests[-1].prompt


def test_the_chat_fills_the_window(open_page: OpenPage) -> None:
    page = open_page()
    give_tools(page)
    talk, inspector, raw = (page.locator(name).bounding_box() for name in (".talk", ".inspector", "#raw"))
    assert talk is not None
    assert inspector is not None
    assert raw is not None
    assert talk["height"] == inspector["height"]
    assert raw["height"] > 500
    assert page.evaluate("document.documentElement.scrollHeight <= window.innerHeight")


def test_a_turn_is_shown_raw_in_colours_and_as_events(open_page: OpenPage) -> None:
    page = open_page()
    ask_for_weather(page)
    assert page.locator("#raw").evaluate("element => element.textContent") == OUTPUT
    assert texts(page, "#raw .k-reasoning") == [REASONING]
    assert texts(page, "#raw .k-name") == ["get_weather"]
    assert "".join(texts(page, "#raw .k-arguments")) == '{"city":"Paris","days":3}'
    assert page.locator("#raw .k-marker").first.evaluate("element => element.textContent") == "<think>\n"
    assert texts(page, "#events .kind") == ["reasoning", "text", "call", "arguments", "call ends", "finish"]
    assert texts(page, "#events .said")[:4] == [REASONING, TEXT, "get_weather", '{"city":"Paris","days":3}']
    page.hover("#events li:nth-child(3)")
    expect(page.locator("#raw .lit.k-name")).to_have_text("get_weather")


def test_results_of_calls_go_back_to_the_model(open_page: OpenPage, served: Served) -> None:
    page = open_page()
    ask_for_weather(page)
    page.fill("#result-text", RESULT)
    page.click(".result button")
    expect(page.locator("#log .turn").last).to_contain_text(ANSWER)
    assert RESULT in served.engine.requests[-1].prompt
    assert served.engine.requests[-1].prompt.count("get_weather") >= 2
    page.click("text=Look at it >> nth=0")
    expect(page.locator("#raw")).to_contain_text(REASONING)


def test_the_prompt_shows_its_control_tokens(open_page: OpenPage) -> None:
    page = open_page()
    page.fill("#message", "<|im_start|>system")
    page.press("#message", "Enter")
    expect(page.locator("#log .turn.assistant")).to_contain_text("get_weather")
    page.click("#tab-prompt")
    expect(page.locator("#prompt-text .k-control").first).to_have_text("<|im_start|>")
    forged = page.locator("#prompt-text .k-content", has_text="<|im_start|>system")
    expect(forged).to_have_count(1)


def test_the_grammar_follows_the_turn(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-next")
    expect(page.locator("#chat-grammar")).to_contain_text("nothing binds this turn")
    ask_for_weather(page)
    expect(page.locator("#chat-grammar")).to_contain_text("It may end here")


def test_raw_output_is_shown_while_it_comes_and_can_be_stopped(open_page: OpenPage) -> None:
    hold = Hold(6)
    engine = ScriptedEngine(Script("Once upon a time there was", cut=4), takes_grammar=False, before_piece=hold)
    with serving(Chat(engine, get_dialect("hermes"))) as other:
        page = open_page(other.url)
        page.fill("#message", "Tell me")
        page.press("#message", "Enter")
        expect(page.locator("#raw")).to_have_text("Once upon a time there w")
        page.click("#stop")
        expect(page.locator("#send")).to_be_visible()
        expect(page.locator("#log .turn.assistant")).to_contain_text("ended: stopped")
        assert hold.left.wait(20)
        page.close()  # before its server: what the page still asks is no complaint


def test_a_failure_is_told_and_what_was_said_is_not_lost(open_page: OpenPage) -> None:
    engine = ScriptedEngine(Script("never", dies_after=0), takes_grammar=False)
    with serving(Chat(engine, get_dialect("hermes"))) as other:
        page = open_page(other.url)
        page.fill("#message", "Tell me")
        page.press("#message", "Enter")
        expect(page.locator("#notice")).to_contain_text("died")
        expect(page.locator("#message")).to_have_value("Tell me")
        page.close()


def test_what_models_write_is_never_markup_of_the_page(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-desk")
    page.fill("#desk-output", "<img src=x onerror=alert(1)><b>bold</b>" + CALL.replace("Paris", "<i>Paris</i>"))
    expect(page.locator("#desk-raw .k-text")).to_have_text("<img src=x onerror=alert(1)><b>bold</b>")
    assert page.locator("#desk img, #desk b, #desk i").count() == 0


# --- the desk


def test_an_output_is_detected_stepped_through_and_converted(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-desk")
    page.fill("#desk-output", OUTPUT)
    give_tools(page)
    page.click("#tab-desk")
    expect(page.locator("#desk-note")).to_contain_text("Looks like hermes or qwen3")
    expect(page.locator("#step-note")).to_contain_text(f"{len(OUTPUT)} settled · the end")
    assert texts(page, "#desk-events .kind")[-1] == "finish"

    page.click("#step-first")
    expect(page.locator("#desk-raw .k-later")).to_have_text(OUTPUT)
    for _ in "<think":
        page.click("#step-on")
    expect(page.locator("#step-note")).to_have_text(f"6 of {len(OUTPUT)} characters · 0 settled · 6 held back")
    expect(page.locator("#desk-raw .k-held")).to_have_text("<think")
    expect(page.locator("#desk-grammar .chips")).to_have_text("any character")
    page.locator("#step").fill(str(OUTPUT.index("eather")))
    expect(page.locator("#desk-grammar .forced")).to_have_text('eather",')

    expect(page.locator("#desk-others .card")).to_have_count(len(dialect_names()))
    assert texts(page, "#desk-others h3") == dialect_names()


def test_a_turn_opens_in_another_dialect_and_comes_back(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-desk")
    page.fill("#desk-output", OUTPUT)
    for name in ("harmony", "glm", "hermes"):
        page.click(f"button[aria-label='Open {name} at the desk']")
        expect(page.locator("#desk-dialect")).to_have_value(name)
        expect(page.locator("#desk-others .card.same h3")).to_have_text(name)
        assert "".join(texts(page, "#desk-events .said")).count("get_weather") == 1
    expect(page.locator("#desk-output")).to_have_value(OUTPUT)


def test_what_a_dialect_cannot_carry_is_said(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-desk")
    page.select_option("#desk-dialect", "hermes")
    page.fill("#desk-output", CALL.replace("get_weather", "get weather"))
    card = page.locator("#desk-others .card", has=page.locator("h3:text-is('pythonic')"))
    expect(card).to_contain_text("Not representable: No Python function can stand for the name 'get weather'")
    page.select_option("#desk-dialect", "mistral")
    page.fill("#desk-output", f"It is written {CALL}")
    card = page.locator("#desk-others .card", has=page.locator("h3:text-is('hermes')"))
    expect(card).to_contain_text("Read back, the calls are not the same.")


def test_output_beyond_the_basic_plane_keeps_its_places(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-desk")
    page.select_option("#desk-dialect", "hermes")
    page.fill("#desk-output", "🌦️ 𝒞𝒶𝓁𝓁\n" + CALL.replace("Paris", "Zürich 🏔"))
    expect(page.locator("#desk-raw .k-name")).to_have_text("get_weather")
    expect(page.locator("#desk-events")).to_contain_text("Zürich 🏔")
    assert "Zürich 🏔" in "".join(texts(page, "#desk-raw .k-arguments"))


def test_samples_of_all_dialects_are_a_click_away(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-desk")
    assert texts(page, "#samples button") == dialect_names()
    for name in ("kimi", "deepseek"):
        page.click(f"#samples button:text-is('{name}')")
        expect(page.locator("#desk-note")).to_contain_text("Tools: get_weather")
        expect(page.locator("#desk-others .card.same h3")).to_have_text(name)
        expect(page.locator("#samples [aria-current=true]")).to_have_text(name)
        expect(page.locator("#desk-events .kind.k-name").first).to_have_text("call")
        expect(page.locator("#desk-events .kind.k-reasoning")).to_have_count(1)
        expect(page.locator("#desk-grammar")).to_contain_text("It may end here")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator("#desk-dialect")).to_have_value("dsml")


def test_an_output_is_played_and_held_where_it_is(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-desk")
    expect(page.locator("#play")).to_be_disabled()
    page.fill("#desk-output", OUTPUT)
    expect(page.locator("#step-note")).to_contain_text("the end")
    page.click("#play")
    expect(page.locator("#step-note")).not_to_contain_text("the end")
    expect(page.locator("#play")).to_have_text("Pause")
    expect(page.locator("#play")).to_have_text("Play", timeout=60_000)
    expect(page.locator("#step-note")).to_contain_text("the end")

    page.click("#play")
    page.click("#step-back")
    expect(page.locator("#play")).to_have_text("Play")
    expect(page.locator("#desk-raw .k-later")).to_have_count(1)


# --- tools and schema


def test_a_schema_is_checked_made_strict_and_tried(open_page: OpenPage) -> None:
    page = open_page()
    page.click("#tab-setup")
    page.fill("#schema", "{")
    expect(page.locator("#schema-note")).to_contain_text("Expected JSON")
    page.fill("#schema", json.dumps(LOOSE))
    expect(page.locator("#violations li").first).to_contain_text("additionalProperties")
    page.click("#make-strict")
    expect(page.locator("#schema-note")).to_contain_text("Strict")
    assert json.loads(page.input_value("#schema"))["additionalProperties"] is False

    page.fill("#so-far", '{"sky":"s')
    page.click("#setup-grammar .forced")
    expect(page.locator("#so-far")).to_have_value('{"sky":"sunny"')
    page.click("#setup-grammar .chips button:text-is('}')")
    expect(page.locator("#setup-grammar")).to_contain_text("It is whole: nothing may follow.")
    page.fill("#so-far", '{"sky":"rainy"}')
    expect(page.locator("#setup-grammar")).to_contain_text("Refused at 8")


def test_the_schema_binds_the_chat_when_asked(open_page: OpenPage, served: Served) -> None:
    page = open_page()
    page.click("#tab-setup")
    page.fill("#schema", json.dumps({**LOOSE, "title": SKY}))
    page.check("#use-schema")
    page.click("#tab-chat")
    expect(page.locator("#asked")).to_have_text("No tools · answer by the schema")
    page.fill("#message", "And the sky?")
    page.press("#message", "Enter")
    expect(page.locator("#send")).to_be_visible()
    expect(page.locator("#log .turn.assistant")).to_have_count(1)
    expect(page.locator("#log .turn.assistant")).to_contain_text('{"sky":"sunny"}')
    assert SKY in served.engine.requests[-1].prompt


# --- links, keys, keyboards


@pytest.mark.parametrize("view", ["chat", "desk", "setup"])
def test_a_link_shows_the_same(open_page: OpenPage, view: str) -> None:
    page = open_page()
    ask_for_weather(page)
    page.click("#tab-desk")
    page.fill("#desk-output", OUTPUT)
    expect(page.locator("#step-note")).to_contain_text("the end")
    page.locator("#step").fill("40")
    expect(page.locator("#step-note")).to_contain_text("40 of")
    page.click(f"#tab-{view}")
    page.click("#copy-link")
    expect(page.locator("#copy-link")).not_to_have_text("Copy link")
    other = open_page(page.url)
    for selector in ("#log", "#raw", "#events", "#desk-raw", "#desk-events", "#step-note", "#desk-note", "#tools-note"):
        if page.locator(selector).is_visible():
            expect(other.locator(selector)).to_have_text(page.locator(selector).inner_text(), use_inner_text=True)
    expect(other.locator(f"#tab-{view}")).to_have_attribute("aria-selected", "true")
    assert other.input_value("#tools") == page.input_value("#tools")


def test_a_damaged_link_is_told_and_the_page_works(open_page: OpenPage, served: Served) -> None:
    page = open_page(f"{served.url}/#s=%%%")
    expect(page.locator("#notice")).to_contain_text("The link is damaged")
    ask_for_weather(page)


def test_a_key_is_asked_for_and_kept_out_of_the_link(open_page: OpenPage) -> None:
    engine = ScriptedEngine(Script(OUTPUT, cut=4), takes_grammar=False)
    with serving(Chat(engine, get_dialect("hermes")), keys=(ApiKey("me", "secret-key"),)) as other:
        assert httpx.get(other.url, trust_env=False).status_code == 200
        assert httpx.get(f"{other.url}/playground/api/about", trust_env=False).status_code == 401
        page = open_page(other.url, ready="#key:visible", expected="401")
        page.fill("#key", "secret-key")
        page.press("#key", "Enter")
        page.wait_for_selector("body[data-view]")
        ask_for_weather(page)
        page.click("#copy-link")
        expect(page.locator("#copy-link")).not_to_have_text("Copy link")
        assert "secret" not in page.url
        assert page.evaluate("localStorage.length + sessionStorage.length + document.cookie.length") == 0
        page.close()


def test_everything_works_by_keyboard(open_page: OpenPage) -> None:
    page = open_page()
    keys = page.keyboard
    keys.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    keys.press("Tab")
    expect(page.locator("#tab-chat")).to_be_focused()
    keys.press("ArrowRight")
    expect(page.locator("#tab-desk")).to_be_focused()
    expect(page.locator("#desk-output")).to_be_visible()
    keys.press("Tab")  # the link
    keys.press("Tab")  # the samples
    expect(page.locator("#samples button").first).to_be_focused()
    keys.press("Tab")
    expect(page.locator("#desk-output")).to_be_focused()
    keys.insert_text(OUTPUT)
    expect(page.locator("#step-note")).to_contain_text("the end")
    page.focus("#step")
    keys.press("Home")
    keys.press("ArrowRight")
    expect(page.locator("#step-note")).to_contain_text("1 of")
    keys.press("Alt+1")
    expect(page.locator("#tab-chat")).to_be_focused()
    page.focus("#message")
    keys.insert_text("Hello")
    keys.press("Enter")
    expect(page.locator("#result-text")).to_be_visible()


@pytest.mark.parametrize("screen", SCREENS)
def test_every_view_is_accessible_and_fits(open_page: OpenPage, screen: str) -> None:
    page = open_page(screen=screen)
    _look(page, f"{screen}-empty")
    ask_for_weather(page)
    _look(page, f"{screen}-chat")
    page.click("#tab-prompt")
    expect(page.locator("#prompt-text .k-control").first).to_be_visible()
    _look(page, f"{screen}-prompt")
    page.click("#tab-next")
    expect(page.locator("#chat-grammar summary")).to_be_visible()
    _look(page, f"{screen}-grammar")
    page.click("#tab-desk")
    page.fill("#desk-output", OUTPUT + '\n<tool_call>\n{"name": ')
    expect(page.locator("#desk-others .card")).to_have_count(len(dialect_names()))
    expect(page.locator("#desk-grammar summary")).to_be_visible()
    _look(page, f"{screen}-desk")
    page.locator("#step").fill(str(OUTPUT.index("_call>")))
    expect(page.locator("#step-note")).to_contain_text("held back")
    _look(page, f"{screen}-step")
    page.click("#tab-setup")
    page.fill("#schema", json.dumps(LOOSE, indent=2))
    expect(page.locator("#violations li").first).to_be_visible()
    page.fill("#so-far", '{"sky":"')
    expect(page.locator("#setup-grammar .chips button:text-is('s')")).to_be_visible()
    _look(page, f"{screen}-setup")


def _look(page: Page, name: str) -> None:
    """No fault of accessibility, nothing wider than the screen; and a screenshot to look at."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)
    found = Axe().run(page).response["violations"]
    assert [(rule["id"], [node["target"] for node in rule["nodes"]]) for rule in found] == []
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} is too wide"
