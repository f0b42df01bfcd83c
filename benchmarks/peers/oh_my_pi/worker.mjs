// Oh-my-pi's scanners on node. The protocol is that of ../worker.py.
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createInbandScanner } from "./dialects.mjs";

const BATCH = 32;
const DIALECTS = {
  anthropic: "anthropic",
  deepseek: "deepseek",
  dsml: "deepseek",
  gemini: "gemini",
  gemma: "gemma",
  glm: "glm",
  harmony: "harmony",
  hermes: "hermes",
  kimi: "kimi",
  minimax: "minimax",
  qwen3: "qwen3",
  xml: "xml",
};

const seconds = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
};

function scanner(dialect, tools) {
  const strings = new Map(
    tools.map(({ function: { name, parameters } }) => [
      name,
      new Set(Object.keys(parameters.properties).filter((key) => parameters.properties[key].type === "string")),
    ]),
  );
  return createInbandScanner(DIALECTS[dialect], {
    stringArgs: (name) => strings.get(name) ?? new Set(),
    tools: tools.map((tool) => tool.function),
  });
}

function scan({ dialect, tools, pieces, limit }) {
  const made = scanner(dialect, tools);
  const marks = [0];
  const start = seconds();
  for (let at = 0; at < pieces.length; at += BATCH) {
    const end = Math.min(at + BATCH, pieces.length);
    for (let index = at; index < end; index++) made.feed(pieces[index]);
    marks.push(seconds() - start);
    if (marks.at(-1) > limit) break;
  }
  const middle = marks[(marks.length - 1) >> 1];
  const growth = middle > 0 ? (marks.at(-1) - middle) / middle : 1;
  return { seconds: marks.at(-1), fed: Math.min(pieces.length, (marks.length - 1) * BATCH), growth };
}

function argumentsOf({ dialect, tools, pieces }) {
  const made = scanner(dialect, tools);
  const events = [...pieces.flatMap((piece) => made.feed(piece)), ...made.flush()];
  const end = events.find((event) => event.type === "toolEnd");
  return { arguments: end?.arguments ?? null, deltas: events.filter((event) => event.type === "toolArgDelta").length };
}

const works = {
  arguments: argumentsOf,
  dialects: () => ({ dialects: Object.keys(DIALECTS) }),
  scan,
  version: ({ distribution_name: name }) => ({
    version: JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url))).version,
  }),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { work, ...request } = JSON.parse(line);
  let answer;
  try {
    answer = works[work](request);
  } catch (error) {
    answer = { error: String(error) };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
