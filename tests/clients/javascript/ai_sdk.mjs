// The AI SDK with its provider for OpenAI.
import { createOpenAI } from "@ai-sdk/openai";
import * as ai from "ai";
import { z } from "zod";

const provider = createOpenAI({ baseURL: process.env.OPENAI_BASE_URL, apiKey: "none" });
const model = process.argv[2] === "chat" ? provider.chat("default") : provider.responses("default");
const called = [];

const structured = await ai.generateText({
  model,
  prompt: "Who?",
  output: ai.Output.object({ schema: z.object({ name: z.string(), age: z.number() }) }),
});
const tools = await ai.generateText({
  model,
  prompt: "The weather in Oslo?",
  tools: {
    get_weather: ai.tool({
      description: "The weather in a city.",
      inputSchema: z.object({ city: z.string() }),
      execute: async ({ city }) => {
        called.push(city);
        return "4 degrees";
      },
    }),
  },
  stopWhen: ai.stepCountIs(3),
});
let text = "";
for await (const delta of ai.streamText({ model, prompt: "Hello" }).textStream) text += delta;
console.log(JSON.stringify({ structured: structured.output, tools: tools.text, called, stream: text }));
