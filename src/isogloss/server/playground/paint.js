// A model's output in colours, and the events that say so. Offsets count characters, not UTF-16 units.

import { make } from "./dom.js";

const EVENT_KINDS = {
  text: ["text", "text"],
  reasoning: ["reasoning", "reasoning"],
  refusal: ["refusal", "refusal"],
  tool_call_start: ["call", "name"],
  tool_call_delta: ["arguments", "arguments"],
  tool_call_end: ["call ends", "name"],
  malformed: ["malformed", "malformed"],
  finish: ["finish", "marker"],
};

const LEGEND = ["marker", "reasoning", "text", "name", "arguments", "refusal", "malformed"];

for (const list of document.querySelectorAll("[data-legend]")) {
  for (const kind of LEGEND) list.append(make("li", {}, make("span", { class: `k-${kind}` }, kind)));
}

// Paints into two elements as events come: each piece of output is written once.
export class Painting {
  constructor(output, list) {
    this.output = output;
    this.list = list;
    this.output.replaceChildren();
    this.list.replaceChildren();
    this.unsettled = [];
    this.rest = null;
    this.last = null;
    this.row = null;
  }

  // What the model wrote, of which no event tells yet.
  come(text) {
    this.unsettled.push(...text);
    this.#showRest();
  }

  // An event that settles the front of it. `runs` are [start, end, kind].
  settle(event, runs) {
    const raw = this.unsettled.splice(0, event.end - event.start);
    this.#showRest();
    const row = this.#tell(event);
    for (const [start, end, kind] of runs) {
      const text = raw.slice(start - event.start, end - event.start).join("");
      if (this.last && this.last.kind === kind && this.last.row === row) {
        this.last.element.firstChild.appendData(text);
      } else {
        const element = make("span", { class: `k-${kind}` }, text);
        this.output.insertBefore(element, this.rest);
        this.last = { kind, row, element };
        row.spans.push(element);
      }
    }
  }

  // What has not come yet, behind a mark.
  later(text) {
    this.output.append(make("span", { class: "k-cut", "aria-hidden": "true" }), make("span", { class: "k-later" }, text));
  }

  follow() {
    this.output.scrollTop = this.output.scrollHeight;
    this.list.scrollTop = this.list.scrollHeight;
  }

  #showRest() {
    const text = this.unsettled.join("");
    if (!text && this.rest) {
      this.rest.remove();
      this.rest = null;
    } else if (text && !this.rest) {
      this.rest = this.output.appendChild(make("span", { class: "k-held" }, text));
    } else if (text) {
      this.rest.textContent = text;
    }
  }

  // Neighbouring deltas are one row.
  #tell(event) {
    const said = saidBy(event);
    const row = this.row;
    if (row && row.type === event.type && row.index === event.index && event.type.match(/^(text|reasoning|refusal|tool_call_delta)$/)) {
      row.said.appendData(said);
      row.span.textContent = `${row.start}–${event.end}`;
      return row;
    }
    this.row = this.#newRow(event, said);
    return this.row;
  }

  #newRow(event, said) {
    const [label, kind] = EVENT_KINDS[event.type];
    const row = { type: event.type, index: event.index, start: event.start, spans: [], said: document.createTextNode(said) };
    row.span = make("span", { class: "span" }, `${event.start}–${event.end}`);
    const item = make("li", {}, make("span", { class: `kind k-${kind}` }, label), make("span", { class: "said" }, row.said), row.span);
    item.addEventListener("mouseenter", () => light(row, true));
    item.addEventListener("mouseleave", () => light(row, false));
    this.list.append(item);
    return row;
  }
}

function light(row, isOn) {
  for (const span of row.spans) span.classList.toggle("lit", isOn);
}

function saidBy(event) {
  switch (event.type) {
    case "tool_call_start":
      return event.name;
    case "tool_call_delta":
      return event.arguments;
    case "tool_call_end":
      return "";
    case "malformed":
      return event.reason;
    case "finish":
      return event.reason;
    default:
      return event.text;
  }
}

// A whole text by its runs, without events.
export function painted(text, runs) {
  const characters = [...text];
  return runs.map(([start, end, kind]) => make("span", { class: `k-${kind}` }, characters.slice(start, end).join("")));
}
