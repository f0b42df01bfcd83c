// The chat: what is said, and what the model wrote for it, as it comes.

import { ask, stream } from "./api.js";
import { byId, calmly, fault, make, note } from "./dom.js";
import { examplesList } from "./examples.js";
import { grammarPanel } from "./grammar.js";
import { Painting } from "./paint.js";
import { bounds, summary } from "./setup.js";
import { change, onChange, state } from "./state.js";

const WHOLE = 1000000;
const SPEAKERS = { user: "You", assistant: "Model", tool: "Result" };

let about;
let running = null;
let shown = null;
let grammar;

export function startChat(served) {
  about = served;
  byId("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    sayWritten();
  });
  byId("message").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      sayWritten();
    }
  });
  byId("stop").addEventListener("click", () => running && running.abort());
  byId("clear").addEventListener("click", () => {
    if (running) running.abort();
    change({ messages: [], chosen: null });
    byId("message").focus();
  });
  byId("example-list").append(...examplesList(say));
  grammar = grammarPanel(byId("chat-grammar"), grammarRequest);

  onChange((names) => {
    note(byId("asked"), summary());
    byId("examples").hidden = state.messages.length > 0;
    byId("clear").disabled = state.messages.length === 0;
    if (names.has("messages")) showLog();
    if (state.view !== "chat") return;
    if (["view", "messages", "chosen"].some((name) => names.has(name)) && !running) showTurn();
    if (state.look === "prompt") showPrompt();
    if (state.look === "next") grammar();
  });
}

// --- asking

function request(messages) {
  const body = { ...bounds(), messages: messages.map(plain) };
  if (state.system.trim()) body.messages.unshift({ role: "system", content: state.system });
  if (state.temperature !== "") body.temperature = Number(state.temperature);
  if (state.mostTokens !== "") body.max_completion_tokens = Number(state.mostTokens);
  return body;
}

// A message as the API takes it, without what only this page knows.
function plain({ raw, startsIn, dialect, end, ...message }) {
  return message;
}

function sayWritten() {
  const text = byId("message").value;
  if (!text.trim() || !say(text)) return;
  byId("message").value = "";
}

// The answer as it comes; nothing while the model speaks, nor before it has the results of its calls.
function say(text) {
  if (running || waitsForResults()) return undefined;
  change({ messages: [...state.messages, { role: "user", content: text }] });
  return run();
}

async function run() {
  const asked = state.messages;
  running = new AbortController();
  busy(true);
  fault(null);
  const turn = new Turn();
  try {
    const body = request(asked);
    const { starts_in: startsIn = "text" } = await ask("prompt", body);
    turn.begin(startsIn);
    for await (const part of stream("chat", body, running.signal)) turn.take(part);
  } catch (error) {
    if (error.name !== "AbortError") fault(error);
    turn.end = "stopped";
  }
  const isAbandoned = state.messages !== asked;
  running = null;
  busy(false);
  if (isAbandoned) return;
  if (turn.raw) change({ messages: [...asked, turn.message()], chosen: asked.length });
  else if (!byId("notice").hidden) takeBack(asked);
}

// Nothing came: what was said goes back to where it can be changed.
function takeBack(asked) {
  const last = asked.at(-1);
  if (last.role !== "user") return;
  byId("message").value = last.content;
  change({ messages: asked.slice(0, -1) });
}

function busy(isBusy) {
  byId("send").hidden = isBusy;
  byId("stop").hidden = !isBusy;
}

// One turn as it comes.
class Turn {
  constructor() {
    this.raw = "";
    this.said = { text: "", reasoning: "", refusal: "" };
    this.calls = [];
    this.malformed = [];
    this.end = "";
    this.startsIn = "text";
  }

  begin(startsIn) {
    this.startsIn = startsIn;
    this.painting = new Painting(byId("raw"), byId("events"));
    shown = { raw: "", startsIn, dialect: about.dialect };
    note(byId("usage"), "");
    this.element = byId("log").appendChild(make("div", { class: "turn assistant chosen" }));
    this.#draw();
  }

  take(part) {
    if (part.error) throw new Error(part.error.message);
    if (part.usage) note(byId("usage"), told(part.usage));
    if (part.piece) {
      this.raw += part.piece;
      shown.raw = this.raw;
      this.painting.come(part.piece);
    }
    if (part.event) this.#settle(part.event, part.runs);
    this.painting.follow();
    if (state.look === "next") grammar();
  }

  message() {
    const message = { role: "assistant", content: this.said.text, raw: this.raw, startsIn: this.startsIn, dialect: about.dialect, end: this.end };
    if (this.said.reasoning) message.reasoning_content = this.said.reasoning;
    if (this.said.refusal) message.refusal = this.said.refusal;
    const calls = this.calls.filter((call) => call.isWhole);
    if (calls.length) {
      message.tool_calls = calls.map(({ id, name, text }) => ({ id, type: "function", function: { name, arguments: text } }));
    }
    return message;
  }

  #settle(event, runs) {
    this.painting.settle(event, runs);
    if (event.type in this.said) this.said[event.type] += event.text;
    else if (event.type === "tool_call_start") this.calls[event.index] = { id: event.id, name: event.name, text: "" };
    else if (event.type === "tool_call_delta") this.calls[event.index].text += event.arguments;
    else if (event.type === "tool_call_end") this.calls[event.index].isWhole = true;
    else if (event.type === "malformed") this.malformed.push(event.reason);
    else if (event.type === "finish") this.end = event.reason;
    this.#draw();
  }

  // At most once a frame, however many events come.
  #draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      if (!this.element.isConnected) return;
      const calls = this.calls.map(({ name, text }) => ({ function: { name, arguments: text } }));
      fill(this.element, "assistant", { content: this.said.text, reasoning_content: this.said.reasoning, refusal: this.said.refusal, tool_calls: calls });
      byId("log").scrollTop = byId("log").scrollHeight;
    });
  }
}

function told(usage) {
  const read = usage.prompt_tokens ? `${usage.prompt_tokens} tokens read, ` : "";
  return `${read}${usage.completion_tokens} written`;
}

// --- the conversation

function showLog() {
  byId("log").replaceChildren(
    ...state.messages.map((message, index) => {
      const element = make("div", { class: `turn ${message.role}` });
      fill(element, message.role, message, index);
      return element;
    }),
  );
  const pending = waitsForResults();
  if (pending) byId("log").append(resultForm(pending));
  byId("log").scrollTop = byId("log").scrollHeight;
}

function fill(element, role, message, index) {
  const who = make("div", { class: "who" }, SPEAKERS[role] || role);
  if (role === "assistant" && message.raw !== undefined) {
    who.append(make("button", { class: "quiet", onclick: () => change({ chosen: index, look: "output" }) }, "Look at it"));
    if (message.end && !["stop", "tool_calls"].includes(message.end)) who.append(`ended: ${message.end}`);
  }
  const parts = [who];
  if (message.reasoning_content) parts.push(make("div", { class: "thought" }, message.reasoning_content));
  if (message.content) parts.push(make("div", { class: "words" }, message.content));
  if (message.refusal) parts.push(make("div", { class: "words k-refusal" }, message.refusal));
  for (const call of message.tool_calls || []) parts.push(callCard(call));
  element.replaceChildren(...parts);
}

function callCard(call) {
  return make(
    "div",
    { class: "call" },
    make("span", { class: "k-name" }, call.function.name),
    " ",
    make("span", { class: "k-arguments" }, call.function.arguments),
  );
}

// The calls of the last turn that have no result yet.
function waitsForResults() {
  const at = state.messages.findLastIndex((message) => message.role === "assistant");
  if (at < 0) return null;
  const later = state.messages.slice(at + 1);
  if (later.some((message) => message.role === "user")) return null;
  const answered = new Set(later.map((message) => message.tool_call_id));
  const open = (state.messages[at].tool_calls || []).filter((call) => !answered.has(call.id));
  return open.length ? open : null;
}

function resultForm(calls) {
  const call = calls[0];
  const id = "result-text";
  const field = make("textarea", { id, rows: "2", class: "code" });
  const form = make(
    "form",
    { class: "turn" },
    make("label", { class: "who", for: id }, `Result of ${call.function.name}`),
    make("div", { class: "result" }, field, make("button", {}, "Give it")),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const result = { role: "tool", tool_call_id: call.id, content: field.value };
    change({ messages: [...state.messages, result] });
    if (waitsForResults()) byId(id).focus();
    else run();
  });
  return form;
}

// --- what is looked at

async function showTurn() {
  const chosen = state.messages[state.chosen];
  const message = chosen && chosen.raw !== undefined ? chosen : state.messages.findLast(({ raw }) => raw !== undefined);
  for (const [index, element] of [...byId("log").children].entries()) {
    element.classList.toggle("chosen", message !== undefined && state.messages[index] === message);
  }
  if (!message) {
    shown = null;
    new Painting(byId("raw"), byId("events"));
    note(byId("usage"), "");
    return;
  }
  if (shown && shown.raw === message.raw && shown.dialect === message.dialect) return;
  shown = message;
  note(byId("usage"), "");
  try {
    const finish = ["length"].includes(message.end) ? message.end : "stop";
    const body = { output: message.raw, dialect: message.dialect, starts_in: message.startsIn, tools: bounds().tools, finish, cut: WHOLE };
    const found = await ask("scan", body);
    if (shown !== message) return;
    const painting = new Painting(byId("raw"), byId("events"));
    painting.come(message.raw);
    for (const event of found.events) painting.settle(event, event.runs);
  } catch (error) {
    fault(error);
  }
}

const showPrompt = calmly(async (isLatest) => {
  const element = byId("prompt-text");
  if (!state.messages.length) {
    element.replaceChildren();
    return note(byId("prompt-note"), "");
  }
  try {
    const found = await ask("prompt", request(state.messages));
    if (!isLatest()) return undefined;
    element.replaceChildren(...promptParts(found));
    const tokens = found.tokens ? `${found.tokens} tokens. ` : "";
    const boxed = found.segments ? "Boxed: control tokens, which no content can become. Shaded: markup that is text." : "This engine takes plain messages.";
    note(byId("prompt-note"), tokens + boxed);
  } catch (error) {
    if (isLatest()) note(byId("prompt-note"), error.message, "wrong");
  }
  return undefined;
});

function promptParts(found) {
  if (found.segments) return found.segments.map(({ text, kind }) => make("span", { class: `k-${kind}` }, text));
  return found.messages.flatMap(({ role, content }) => [make("span", { class: "k-marker" }, role), `\n${content}\n\n`]);
}

function grammarRequest() {
  try {
    const body = bounds();
    if (!body.tools && !body.response_format) return "No tools and no schema: nothing binds this turn.";
    return { ...body, dialect: about.dialect, starts_in: shown ? shown.startsIn : "text", text: shown ? shown.raw : "" };
  } catch (error) {
    return error.message;
  }
}
