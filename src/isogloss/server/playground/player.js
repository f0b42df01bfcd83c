// Plays an output as it would come from a model: cut after cut, from the start when it is at its end.

import { byId } from "./dom.js";

const SECONDS = 8;
const TICK = 50;

let timer = 0;

// `steps` has `isAtEnd()`, `rewind()`, `go(count)` and `cuts()`. Long outputs go several cuts a tick.
export function startPlayer(steps) {
  byId("play").addEventListener("click", () => {
    if (timer) return pause();
    if (steps.isAtEnd()) steps.rewind();
    const count = Math.max(1, Math.ceil((steps.cuts() * TICK) / (SECONDS * 1000)));
    timer = setInterval(() => {
      steps.go(count);
      if (steps.isAtEnd()) pause();
    }, TICK);
    return tell();
  });
}

export function pause() {
  clearInterval(timer);
  timer = 0;
  tell();
}

function tell() {
  byId("play").textContent = timer ? "Pause" : "Play";
  byId("step-note").setAttribute("aria-live", timer ? "off" : "polite");
}
