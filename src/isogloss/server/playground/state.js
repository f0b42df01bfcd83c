// What is on the screen, kept in the URL's fragment so that a link shows the same.

const DEFAULTS = {
  view: "chat",
  look: "output",
  messages: [],
  chosen: null,
  system: "",
  tools: "",
  choice: "auto",
  parallel: true,
  schema: "",
  useSchema: false,
  temperature: "",
  mostTokens: "",
  output: "",
  dialect: "detect",
  startsIn: "",
  finish: "stop",
  step: null,
  stepSize: 1,
  soFar: "",
  grammarOf: "",
};

const LONGEST_FRAGMENT = 60000;
const PREFIX = "#s=";

export const state = structuredClone(DEFAULTS);

const listeners = [];
let timer = 0;
let written = "";

// `react` is called with the names of what changed, and once with all of them at the start.
export function onChange(react) {
  listeners.push(react);
}

export function change(changes) {
  const names = Object.keys(changes).filter((name) => state[name] !== changes[name]);
  if (!names.length) return;
  Object.assign(state, changes);
  tell(new Set(names));
  clearTimeout(timer);
  timer = setTimeout(writeFragment, 300);
}

function tell(names) {
  for (const react of listeners) react(names);
}

export async function writeFragment() {
  clearTimeout(timer);
  const told = {};
  for (const [name, value] of Object.entries(state)) {
    if (JSON.stringify(value) !== JSON.stringify(DEFAULTS[name])) told[name] = value;
  }
  const packed = Object.keys(told).length ? PREFIX + (await pack(JSON.stringify(told))) : "";
  const isTooLong = packed.length > LONGEST_FRAGMENT;
  written = isTooLong ? "" : packed;
  if (location.hash !== written) history.replaceState(null, "", written || location.pathname + location.search);
  return !isTooLong;
}

export async function readFragment() {
  if (location.hash === written && written) return;
  let told = {};
  if (location.hash.startsWith(PREFIX)) {
    try {
      told = JSON.parse(await unpack(location.hash.slice(PREFIX.length)));
    } catch {
      throw new Error("The link is damaged: what it showed cannot be read.");
    }
  }
  for (const [name, value] of Object.entries(DEFAULTS)) {
    const isSame = name in told && (value === null || typeof told[name] === typeof value);
    state[name] = isSame ? told[name] : structuredClone(value);
  }
  if (!Array.isArray(state.messages)) state.messages = [];
  tell(new Set(Object.keys(DEFAULTS)));
}

async function pack(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let binary = "";
  for (const byte of bytes) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

async function unpack(packed) {
  const binary = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(binary, (character) => character.charCodeAt(0));
  return new TextDecoder().decode(await through(bytes, new DecompressionStream("deflate-raw")));
}

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
