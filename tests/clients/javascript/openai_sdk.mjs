// The official SDK for JavaScript, with its helpers for zod.
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const client = new OpenAI({ maxRetries: 0 });
const model = "default";
const Person = z.object({ name: z.string(), age: z.number() });
const City = z.object({ city: z.string() });
const called = [];
const getWeather = ({ city }) => {
  called.push(city);
  return "4 degrees";
};

async function chat() {
  const completions = client.chat.completions;
  const structured = await completions.parse({
    model,
    messages: [{ role: "user", content: "Who?" }],
    response_format: zodResponseFormat(Person, "person"),
  });
  const runner = completions.runTools({
    model,
    messages: [{ role: "user", content: "The weather in Oslo?" }],
    tools: [zodFunction({ name: "get_weather", parameters: City, function: getWeather })],
  });
  const tools = await runner.finalContent();
  const stream = completions.stream({ model, messages: [{ role: "user", content: "Hello" }] });
  let text = "";
  stream.on("content", (delta) => (text += delta));
  await stream.finalChatCompletion();
  return { structured: structured.choices[0].message.parsed, tools, called, stream: text };
}

async function responses() {
  const structured = await client.responses.parse({
    model,
    input: "Who?",
    text: { format: zodTextFormat(Person, "person") },
  });
  const tool = zodResponsesFunction({ name: "get_weather", parameters: City });
  const first = await client.responses.parse({ model, input: "The weather in Oslo?", tools: [tool] });
  const results = first.output
    .filter((item) => item.type === "function_call")
    .map((item) => ({
      type: "function_call_output",
      call_id: item.call_id,
      output: getWeather(item.parsed_arguments),
    }));
  const second = await client.responses.create({ model, input: results, previous_response_id: first.id, tools: [tool] });
  const stream = client.responses.stream({ model, input: "Hello" });
  let text = "";
  stream.on("response.output_text.delta", (event) => (text += event.delta));
  await stream.finalResponse();
  return { structured: structured.output_parsed, tools: second.output_text, called, stream: text };
}

console.log(JSON.stringify(await { chat, responses }[process.argv[2]]()));
