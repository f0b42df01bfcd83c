// The server's own endpoints. The key stays in this page's memory: it is in no link and in no storage.

import { byId } from "./dom.js";

let key = "";
let waiting = [];

async function request(name, body, signal) {
  for (;;) {
    const headers = { "content-type": "application/json" };
    if (key) headers.authorization = `Bearer ${key}`;
    const options = body === undefined ? { headers, signal } : { method: "POST", headers, body: JSON.stringify(body), signal };
    const response = await fetch(`playground/api/${name}`, options).catch((error) => {
      throw error.name === "AbortError" ? error : new Error("The server does not answer.");
    });
    if (response.ok) return response;
    if (response.status === 401) {
      await askForKey();
      continue;
    }
    throw await refusal(response);
  }
}

async function refusal(response) {
  try {
    const { error } = await response.json();
    return new Error(error.param ? `${error.message} (${error.param})` : error.message);
  } catch {
    return new Error(`The server answered ${response.status}.`);
  }
}

function askForKey() {
  byId("key-form").hidden = false;
  byId("key").focus();
  return new Promise((resolve) => waiting.push(resolve));
}

byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  key = byId("key").value.trim();
  byId("key").value = "";
  byId("key-form").hidden = true;
  for (const resolve of waiting) resolve();
  waiting = [];
});

export async function ask(name, body) {
  return (await request(name, body)).json();
}

// The data of a stream of server-sent events, one object after the other.
export async function* stream(name, body, signal) {
  const response = await request(name, body, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let begun = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const lines = (begun + value).split("\n");
      begun = lines.pop();
      for (const line of lines) {
        if (line.startsWith("data: {")) yield JSON.parse(line.slice(6));
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}
