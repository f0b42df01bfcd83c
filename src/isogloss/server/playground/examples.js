// What a chat can begin with: a plain question, a call of a tool, an answer by a schema.

import { make } from "./dom.js";
import { change, state } from "./state.js";

export const WEATHER = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather forecast for a city",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", description: "Name of the city" },
        days: { type: "integer", minimum: 1, maximum: 7 },
      },
      required: ["city", "days"],
      additionalProperties: false,
    },
  },
};

export const SKY = {
  type: "object",
  properties: {
    sky: { type: "string", enum: ["sunny", "cloudy", "rainy", "snowy"] },
    temperature: { type: "integer", description: "In degrees Celsius" },
    advice: { type: "string", description: "What to wear, in a few words" },
  },
  required: ["sky", "temperature", "advice"],
  additionalProperties: false,
};

export const written = (value) => JSON.stringify(value, null, 2);

// `given` fills in editors that are empty; what the reader wrote stays, and the example is asked with that. `bound` is
// for the example, `after` for what follows it: one call is required, since small models choose to make none,
// or go on making them.
const EXAMPLES = [
  {
    title: "Ask a question",
    message: "Why is the sky blue? Answer in two sentences.",
    given: {},
    bound: { useSchema: false },
  },
  {
    title: "Let it call a tool",
    message: "What will the weather be in Paris for the next 3 days?",
    given: { tools: written([WEATHER]) },
    bound: { useSchema: false, choice: "required", parallel: false },
    after: { choice: "auto", parallel: true },
  },
  {
    title: "Ask for JSON by a schema",
    message: "Describe a winter morning in Oslo, and say what to wear.",
    given: { schema: written(SKY) },
    bound: { useSchema: true },
  },
];

// Buttons in a list; `say(text)` is called once tools and schema are in place, and resolves when it was answered.
export function examplesList(say) {
  return EXAMPLES.map((example) => {
    const begin = async () => {
      const empty = Object.entries(example.given).filter(([name]) => !state[name].trim());
      change({ ...example.bound, ...Object.fromEntries(empty) });
      await say(example.message);
      change(example.after || {});
    };
    const button = make("button", { onclick: begin }, make("strong", {}, example.title), make("span", {}, example.message));
    return make("li", {}, button);
  });
}
