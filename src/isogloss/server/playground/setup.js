// Tools, the schema of the answer, and a text tried against their grammar: what the other two views work with.

import { ask } from "./api.js";
import { byId, calmly, make, note } from "./dom.js";
import { SKY, WEATHER, written } from "./examples.js";
import { grammarPanel } from "./grammar.js";
import { change, onChange, state } from "./state.js";

const FIELDS = [
  ["tools", "tools"],
  ["schema", "schema"],
  ["system", "system"],
  ["so-far", "soFar"],
  ["temperature", "temperature"],
  ["most-tokens", "mostTokens"],
];
const MODES = ["auto", "none", "required"];
const ANSWER = "";

// The tools, none for an empty editor. Throws what the reader has to put right.
export function tools() {
  const value = parsed(state.tools, "the tools");
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new Error("Expected a JSON array of tools.");
  return value;
}

export function toolNames() {
  try {
    return tools().map((tool) => (tool && (tool.function || tool).name) || "?");
  } catch {
    return [];
  }
}

function schema() {
  return parsed(state.schema, "the schema");
}

function parsed(text, what) {
  if (!text.trim()) return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`Expected JSON in ${what}: ${error.message}`);
  }
}

function form() {
  const value = schema();
  return value === undefined ? undefined : { type: "json_schema", json_schema: { name: "answer", strict: false, schema: value } };
}

// The part of a request that binds a turn.
export function bounds() {
  const told = tools();
  const body = {};
  if (told.length) {
    body.tools = told;
    body.parallel_tool_calls = state.parallel;
    if (state.choice !== "auto") {
      body.tool_choice = MODES.includes(state.choice) ? state.choice : { type: "function", function: { name: state.choice } };
    }
  }
  if (state.useSchema && form()) body.response_format = form();
  return body;
}

// One line that says what a turn is bound by.
export function summary() {
  const names = toolNames();
  const parts = [names.length ? `Tools: ${names.join(", ")}` : "No tools"];
  if (state.useSchema && state.schema.trim()) parts.push("answer by the schema");
  return parts.join(" · ");
}

export function startSetup(about) {
  for (const [id, name] of FIELDS) byId(id).addEventListener("input", (event) => change({ [name]: event.target.value }));
  byId("choice").addEventListener("change", (event) => change({ choice: event.target.value }));
  byId("parallel").addEventListener("change", (event) => change({ parallel: event.target.checked }));
  byId("use-schema").addEventListener("change", (event) => change({ useSchema: event.target.checked }));
  byId("grammar-of").append(
    make("option", { value: ANSWER }, "the answer alone"),
    ...about.dialects.map(({ name }) => make("option", { value: name }, `a turn in ${name}`)),
  );
  byId("grammar-of").addEventListener("change", (event) => change({ grammarOf: event.target.value }));

  for (const [name, example] of [["tools", [WEATHER]], ["schema", SKY]]) {
    const button = byId(`${name}-example`);
    button.addEventListener("click", () => {
      change({ [name]: written(example) });
      byId(name).focus();
    });
    onChange(() => (button.hidden = Boolean(state[name].trim())));
  }

  const grammar = grammarPanel(byId("setup-grammar"), grammarRequest, (text) => {
    change({ soFar: state.soFar + text });
    byId("so-far").focus();
  });

  onChange((names) => {
    for (const [id, name] of FIELDS) {
      if (names.has(name) && byId(id).value !== state[name]) byId(id).value = state[name];
    }
    byId("parallel").checked = state.parallel;
    byId("use-schema").checked = state.useSchema;
    byId("grammar-of").value = state.grammarOf;
    if (names.has("tools") || names.has("choice")) showTools();
    if (names.has("schema")) checkSchema();
    const isShown = state.view === "setup";
    const binds = ["view", "soFar", "grammarOf", "tools", "schema", "choice", "parallel", "useSchema"];
    if (isShown && binds.some((name) => names.has(name))) grammar();
  });
}

function grammarRequest() {
  try {
    if (state.grammarOf !== ANSWER) return { ...bounds(), dialect: state.grammarOf, text: state.soFar };
    const asked = form();
    return asked ? { response_format: asked, is_bare: true, text: state.soFar } : "Write a schema, or choose a dialect.";
  } catch (error) {
    return error.message;
  }
}

function showTools() {
  let names = [];
  try {
    tools();
    names = toolNames();
    note(byId("tools-note"), names.length ? names.join(", ") : "");
  } catch (error) {
    note(byId("tools-note"), error.message, "wrong");
  }
  const options = [...MODES, ...names.filter((name) => !MODES.includes(name))];
  byId("choice").replaceChildren(...options.map((name) => make("option", { value: name }, name)));
  if (!options.includes(state.choice)) byId("choice").append(make("option", { value: state.choice }, state.choice));
  byId("choice").value = state.choice;
}

const checkSchema = calmly(async (isLatest) => {
  const [told, list, button] = [byId("schema-note"), byId("violations"), byId("make-strict")];
  list.replaceChildren();
  button.hidden = true;
  try {
    const value = schema();
    if (value === undefined) return note(told, "");
    const found = await ask("schema", { schema: value });
    if (!isLatest()) return undefined;
    showVerdict(found, told, list, button);
  } catch (error) {
    if (isLatest()) note(told, error.message, "wrong");
  }
  return undefined;
});

function showVerdict(found, told, list, button) {
  if (!found.violations.length) return note(told, "Strict: within the subset of Structured Outputs.", "right");
  note(told, found.reason || "Outside the strict subset:", "wrong");
  list.replaceChildren(
    ...found.violations.map(({ pointer, message }) => make("li", {}, make("code", {}, pointer || "/"), ` ${message}`)),
  );
  button.hidden = !found.strict;
  button.onclick = () => {
    change({ schema: JSON.stringify(found.strict, null, 2) });
    const lost = found.losses.map(({ pointer, message }) => `${pointer || "/"}: ${message}`);
    if (lost.length) list.replaceChildren(...lost.map((text) => make("li", {}, text)));
  };
  return undefined;
}
