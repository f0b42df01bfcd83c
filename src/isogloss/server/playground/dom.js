// Elements by id, made, and said to the reader.

export const byId = (id) => document.getElementById(id);

// make("p", {class: "hint", onclick: f}, "text", element, ...)
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children);
  return element;
}

// A note under a field: nothing, a plain one, or one that is `wrong` or `right`.
export function note(element, text, kind = "") {
  element.textContent = text;
  element.className = kind ? `hint ${kind}` : "hint";
}

export function fault(error) {
  const notice = byId("notice");
  notice.textContent = error ? error.message : "";
  notice.hidden = !error;
}

// Calls `work` once things have been quiet for a while; a result that came too late is dropped.
export function calmly(work, milliseconds = 250) {
  let timer = 0;
  let latest = 0;
  return () => {
    clearTimeout(timer);
    const mine = ++latest;
    timer = setTimeout(() => work(() => mine === latest), milliseconds);
  };
}
