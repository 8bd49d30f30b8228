/**
 * An item of an `.entries` list, with an optional button.
 * @param {string} name
 * @param {string[]} facts
 * @param {{ label: string, act: () => unknown }} [action]
 */
export function entryItem(name, facts, action) {
  const item = document.createElement("li");
  const thing = document.createElement("div");
  thing.append(withText("strong", name), ...facts.map((fact) => withText("span", fact)));
  item.append(thing);
  if (action) item.append(buttonFor(name, action));
  return item;
}

/**
 * @param {string} name
 * @param {{ label: string, act: () => unknown }} action
 */
function buttonFor(name, { label, act }) {
  const button = /** @type {HTMLButtonElement} */ (withText("button", label));
  button.type = "button";
  button.className = "button";
  button.setAttribute("aria-label", `${label} ${name}`);
  button.addEventListener("click", act);
  return button;
}

/**
 * @param {string} tag
 * @param {string} text
 */
function withText(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}
