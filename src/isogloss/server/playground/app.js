// Puts the page together.

import { ask } from "./api.js";
import { startChat } from "./chat.js";
import { startDesk } from "./desk.js";
import { byId, fault } from "./dom.js";
import { startSetup } from "./setup.js";
import { change, onChange, readFragment, state, writeFragment } from "./state.js";
import { startTabs } from "./tabs.js";

async function start() {
  const about = await ask("about");
  byId("served").textContent = about.model ? `${about.model} · ${about.dialect} on ${about.engine}` : "";
  startTabs();
  startSetup(about);
  startDesk(about);
  startChat(about);
  onChange(() => document.body.setAttribute("data-view", state.view));
  await readFragment().catch(async (error) => {
    history.replaceState(null, "", location.pathname);
    await readFragment();
    fault(error);
  });
  if (about.fault) fault(new Error(about.fault));
}

byId("copy-link").addEventListener("click", async (event) => {
  const button = event.currentTarget;
  const isWhole = await writeFragment();
  let said = "Too long for a link";
  if (isWhole) {
    said = await navigator.clipboard.writeText(location.href).then(() => "Copied", () => "It is in the address bar");
  }
  button.textContent = said;
  setTimeout(() => (button.textContent = "Copy link"), 1800);
});

window.addEventListener("hashchange", () => readFragment().catch(fault));
window.addEventListener("keydown", (event) => {
  const view = { 1: "chat", 2: "desk", 3: "setup" }[event.key];
  if (event.altKey && view) {
    event.preventDefault();
    change({ view });
    byId(`tab-${view}`).focus();
  }
});

start().catch(fault);
