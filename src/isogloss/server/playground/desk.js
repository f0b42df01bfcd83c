// The dialect desk: any output, scanned, stepped through cut by cut, and written in every other dialect.

import { ask } from "./api.js";
import { byId, calmly, fault, make, note } from "./dom.js";
import { grammarPanel } from "./grammar.js";
import { Painting, painted } from "./paint.js";
import { pause, startPlayer } from "./player.js";
import { bounds, summary, tools } from "./setup.js";
import { change, onChange, state } from "./state.js";
import { moveByArrows } from "./tabs.js";

const LONGEST_FOR_GRAMMAR = 20000;

let scan = null;
let characters = [];
let grammar;

export function startDesk(about) {
  byId("desk-dialect").append(
    make("option", { value: "detect" }, "Detect"),
    ...about.dialects.map(({ name }) => make("option", { value: name }, name)),
  );
  byId("desk-output").addEventListener("input", (event) => change({ output: event.target.value, step: null }));
  for (const [id, name] of [["desk-dialect", "dialect"], ["desk-starts", "startsIn"], ["desk-finish", "finish"]]) {
    byId(id).addEventListener("change", (event) => change({ [name]: event.target.value, step: null }));
  }
  byId("step-size").addEventListener("change", (event) => change({ stepSize: Number(event.target.value), step: null }));
  byId("samples").append(
    ...about.dialects.map(({ name, title }) => make("button", { title, onclick: () => showSample(name) }, name)),
  );
  moveByArrows(byId("samples"), [...byId("samples").children]);
  byId("step").addEventListener("input", (event) => stepByHand(Number(event.target.value)));
  byId("step-first").addEventListener("click", () => stepByHand(0));
  byId("step-back").addEventListener("click", () => stepByHand(position() - 1));
  byId("step-on").addEventListener("click", () => stepByHand(position() + 1));
  byId("step-last").addEventListener("click", () => stepByHand(Infinity));
  startPlayer({ isAtEnd: () => state.step === null, rewind: () => stepTo(0), go: (count) => stepTo(position() + count), cuts });
  grammar = grammarPanel(byId("desk-grammar"), grammarRequest);

  onChange((names) => {
    if (byId("desk-output").value !== state.output) byId("desk-output").value = state.output;
    byId("desk-dialect").value = state.dialect;
    byId("desk-starts").value = state.startsIn;
    byId("desk-finish").value = state.finish;
    byId("step-size").value = String(state.stepSize);
    for (const button of byId("samples").children) button.setAttribute("aria-current", String(button.textContent === state.dialect));
    if (state.view !== "desk") return pause();
    const scans = ["view", "output", "dialect", "startsIn", "finish", "stepSize", "tools"];
    if (!scans.some((name) => names.has(name))) return names.has("step") ? showStep() : undefined;
    pause();
    return refresh();
  });
}

async function showSample(name) {
  try {
    const { dialect, output, starts_in: start, tools: known } = await ask("sample", { dialect: name });
    const told = state.tools.trim() ? {} : { tools: JSON.stringify(known, null, 2) };
    change({ output, dialect, startsIn: start === "text" ? "" : start, step: null, ...told });
  } catch (error) {
    fault(error);
  }
}

const refresh = calmly(async (isLatest) => {
  try {
    const body = { output: state.output, dialect: state.dialect, tools: tools() };
    if (state.startsIn) body.starts_in = state.startsIn;
    const found = await ask("scan", { ...body, finish: state.finish, cut: state.stepSize });
    const others = state.output ? await ask("convert", { ...body, dialect: found.dialect, starts_in: found.starts_in }) : null;
    if (!isLatest()) return;
    scan = found;
    characters = [...state.output];
    fault(null);
    showReading();
    showStep();
    showOthers(others);
  } catch (error) {
    if (isLatest()) fault(error);
  }
});

function showReading() {
  const parts = [];
  if (state.dialect === "detect" && state.output) {
    parts.push(scan.likely.length ? `Looks like ${listed(scan.likely)}` : `Plain text in any dialect; read as ${scan.dialect}`);
    if (scan.likely.length > 1) parts.push(`read as ${scan.dialect}`);
  }
  if (scan.starts_in === "reasoning") parts.push("the prompt has opened the reasoning");
  parts.push(summary());
  const told = parts.join(" · ");
  note(byId("desk-note"), told[0].toUpperCase() + told.slice(1));
}

function listed(names) {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} or ${names.at(-1)}`;
}

// --- stepping: positions are cuts, the last one is the end of the output, told to the scanner

const cuts = () => (scan ? Math.ceil(characters.length / scan.cut) : 0);
const position = () => (!scan ? 0 : state.step === null ? cuts() + 1 : Math.min(Math.ceil(state.step / scan.cut), cuts()));

function stepByHand(asked) {
  pause();
  stepTo(asked);
}

function stepTo(asked) {
  if (!scan) return;
  const reached = Math.max(0, Math.min(asked, cuts() + 1));
  change({ step: reached > cuts() ? null : Math.min(reached * scan.cut, characters.length) });
}

const fed = () => (state.step === null ? characters.length : Math.min(position() * scan.cut, characters.length));

function showStep() {
  if (!scan) return;
  const slider = byId("step");
  slider.max = String(cuts() + 1);
  slider.value = String(position());
  const [count, isOver] = [fed(), state.step === null];
  slider.setAttribute("aria-valuetext", isOver ? "the end" : `${count} of ${characters.length} characters`);
  byId("step-first").disabled = byId("step-back").disabled = position() === 0;
  byId("step-last").disabled = byId("step-on").disabled = isOver;
  byId("play").disabled = slider.disabled = !state.output;

  const painting = new Painting(byId("desk-raw"), byId("desk-events"));
  painting.come(characters.slice(0, count).join(""));
  let settled = 0;
  for (const event of scan.events) {
    if (!isOver && (event.at === null || event.at > count)) break;
    painting.settle(event, event.runs);
    settled = event.end;
  }
  if (count < characters.length) painting.later(characters.slice(count).join(""));
  const held = count - settled;
  const told = [`${count} of ${characters.length} characters`, `${settled} settled`];
  if (held) told.push(`${held} held back`);
  if (isOver) told.push("the end");
  note(byId("step-note"), state.output ? told.join(" · ") : "");
  grammar();
}

function grammarRequest() {
  if (!scan || !state.output) return "Paste an output first.";
  if (fed() > LONGEST_FOR_GRAMMAR) return `Shown for the first ${LONGEST_FOR_GRAMMAR} characters only.`;
  try {
    const text = characters.slice(0, fed()).join("");
    return { ...bounds(), dialect: scan.dialect, starts_in: scan.starts_in, text };
  } catch (error) {
    return error.message;
  }
}

// --- the other dialects

function showOthers(found) {
  const dropped = found ? found.dropped.map(({ reason }) => reason) : [];
  note(byId("desk-dropped"), dropped.length ? `Left out, for it is no part of the turn: ${dropped.join("; ")}` : "");
  byId("desk-turn").hidden = !found;
  byId("desk-others").replaceChildren(...(found ? found.dialects.map((one) => card(one, one.name === found.dialect)) : []));
}

function card(one, isSame) {
  const head = make("header", {}, make("h3", {}, one.name), make("p", { title: one.title }, one.title));
  const element = make("article", { class: isSame ? "card same" : "card" }, head);
  if (one.output === null) {
    element.append(make("p", { class: "hint" }, `Not representable: ${one.reason}`));
    return element;
  }
  head.append(
    make("button", { class: "quiet", "aria-label": `Open ${one.name} at the desk`, onclick: () => open(one) }, "Open"),
    make("button", { class: "quiet", "aria-label": `Copy ${one.name}`, onclick: (event) => copy(event.target, one.output) }, "Copy"),
  );
  const raw = make("div", { class: "raw", tabindex: "0", role: "region", "aria-label": `The turn in ${one.name}` });
  raw.append(...painted(one.output, one.runs));
  element.append(raw);
  if (one.starts_in === "reasoning") element.append(make("p", { class: "hint" }, "The prompt has opened the reasoning."));
  for (const loss of one.losses) element.append(make("p", { class: "hint wrong" }, `Read back, ${loss}.`));
  return element;
}

function open(one) {
  change({ output: one.output, dialect: one.name, startsIn: one.starts_in === "text" ? "" : one.starts_in, step: null });
  byId("desk-output").focus();
}

async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Select and copy";
  }
  setTimeout(() => (button.textContent = "Copy"), 1500);
}
