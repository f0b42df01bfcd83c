// Tabs by mouse and by arrow keys; `data-tabs` of a list names the state that it sets.

import { byId } from "./dom.js";
import { change, onChange, state } from "./state.js";

export function startTabs() {
  for (const list of document.querySelectorAll("[data-tabs]")) wire(list, [...list.querySelectorAll("[role=tab]")]);
}

function wire(list, tabs) {
  const name = list.dataset.tabs;
  const choose = (tab) => change({ [name]: tab.dataset.value });
  for (const tab of tabs) tab.addEventListener("click", () => choose(tab));
  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = tabs[(to + tabs.length) % tabs.length];
    choose(tab);
    tab.focus();
  });
  onChange((names) => {
    if (!names.has(name)) return;
    if (!tabs.some((tab) => tab.dataset.value === state[name])) state[name] = tabs[0].dataset.value;
    for (const tab of tabs) {
      tab.disabled = false;
      const isChosen = tab.dataset.value === state[name];
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      byId(tab.getAttribute("aria-controls")).hidden = !isChosen;
    }
  });
}
