// Where a text stands in a grammar: what was accepted, what was not, and which characters may come next.

import { ask } from "./api.js";
import { calmly, make } from "./dom.js";

const NAMES = { 9: "tab", 10: "line break", 13: "return", 32: "space" };
const SHORTEST_RANGE = 3;
const MOST_CHIPS = 48;
const SHOWN_BEFORE = 60;
const LAST_OF_ALL = 0x10ffff;

// `request()` gives the body to ask with, or a string that says why there is nothing to ask. `pick(text)` is told
// what the reader chose to come next.
export function grammarPanel(element, request, pick) {
  const refresh = calmly(async (isLatest) => {
    const body = request();
    if (typeof body === "string") {
      element.replaceChildren(make("p", { class: "hint" }, body));
      return;
    }
    let content;
    try {
      content = place(await ask("constraint", body), [...body.text], pick, isOpen(element));
    } catch (error) {
      content = [make("p", { class: "hint wrong" }, error.message)];
    }
    if (isLatest()) element.replaceChildren(...content);
  });
  return refresh;
}

const isOpen = (element) => Boolean(element.querySelector("details[open]"));

function place(found, characters, pick, isGrammarOpen) {
  const accepted = characters.slice(0, found.offset);
  const refused = characters.slice(found.offset).join("");
  const shown = accepted.slice(-SHOWN_BEFORE).join("");
  const text = make("p", { class: "place" }, accepted.length > SHOWN_BEFORE ? "…" : "", make("span", { class: "k-good" }, shown));
  const content = [];
  if (refused) {
    text.append(make("span", { class: "k-malformed" }, refused));
    content.push(text, make("p", { class: "hint wrong" }, `Refused at ${found.offset}. In its place may come:`));
  } else {
    if (accepted.length) content.push(text);
    content.push(make("p", { class: found.is_complete ? "hint right" : "hint" }, verdict(found)));
  }
  content.push(chips(found, refused ? undefined : pick));
  content.push(
    make("details", { open: isGrammarOpen }, make("summary", {}, "The grammar, for llguidance"), make("pre", { tabindex: "0" }, found.lark)),
  );
  return content;
}

function verdict(found) {
  if (found.characters.length === 0) return found.is_complete ? "It is whole: nothing may follow." : "Nothing may follow.";
  return found.is_complete ? "It may end here, or go on with:" : "It must go on with:";
}

function chips(found, pick) {
  const list = make("div", { class: "chips" });
  if ([...found.forced].length > 1) list.append(chip(visible(found.forced), found.forced, pick, "forced"));
  const parts = found.characters.flatMap(([low, high]) => partsOf(low, high, found.is_exact));
  for (const [label, text] of parts.slice(0, MOST_CHIPS)) list.append(chip(label, text, pick));
  if (parts.length > MOST_CHIPS) list.append(make("span", {}, `and ${parts.length - MOST_CHIPS} more`));
  return list;
}

function chip(label, text, pick, kind) {
  if (!pick || text === null) return make("span", { class: kind }, label);
  return make("button", { type: "button", class: kind, onclick: () => pick(text) }, label);
}

// Single characters can be chosen; ranges are told.
function partsOf(low, high, isExact) {
  if (high === LAST_OF_ALL && low <= 0x80) return [[low === 0 ? "any character" : "any character beyond ASCII", null]];
  if (high - low < SHORTEST_RANGE) {
    const codes = Array.from({ length: high - low + 1 }, (_, position) => low + position);
    return codes.map((code) => [nameOf(code), String.fromCodePoint(code)]);
  }
  if (low === 32) return [[NAMES[32], " "], ...partsOf(33, high, isExact)];
  const some = isExact || high < 0x80 ? "" : "some of ";
  return [[`${some}${nameOf(low)} to ${nameOf(high)}`, null]];
}

function nameOf(code) {
  if (NAMES[code]) return NAMES[code];
  const isShown = code > 32 && (code < 0x7f || code > 0xa0) && !(code >= 0xd800 && code < 0xe000) && !(code >= 0x2000 && code < 0x2070);
  return isShown ? String.fromCodePoint(code) : `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
}

function visible(text) {
  return text.replaceAll("\n", "⏎").replaceAll("\t", "⇥");
}
