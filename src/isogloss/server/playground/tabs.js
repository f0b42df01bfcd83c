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
  onArrows(list, tabs, choose);
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

// One stop of the Tab key for a row of buttons; arrow keys go along it.
export function moveByArrows(list, buttons) {
  const stopAt = (stop) => buttons.forEach((button) => (button.tabIndex = button === stop ? 0 : -1));
  for (const button of buttons) button.addEventListener("focus", () => stopAt(button));
  stopAt(buttons[0]);
  onArrows(list, buttons, () => {});
}

function onArrows(list, buttons, reach) {
  list.addEventListener("keydown", (event) => {
    const at = buttons.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const button = buttons[(to + buttons.length) % buttons.length];
    reach(button);
    button.focus();
  });
}
