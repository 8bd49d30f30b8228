import { type Html, html } from "../../platform/http/html.ts";

export interface Field {
  /** The name in the request. Two fields with one name on a page need different ids. */
  name: string;
  id?: string;
  label: string;
  /** Shown when the field is empty. */
  missing: string;
  hint?: string;
  type?: "text" | "email" | "password";
  autocomplete: string;
  /** A code: no capitals, no spell check. */
  code?: boolean;
  digits?: boolean;
  autofocus?: boolean;
  maxLength?: number;
}

/** The label, hint, error and input, tied together for screen readers. */
export function field(options: Field): Html {
  const { name, id = name, label, hint, type = "text" } = options;
  return html`<div class="field">
<label for="${id}">${label}</label>
${hint ? html`<p class="hint" id="${id}-hint">${hint}</p>` : ""}
<p class="fault" id="${id}-fault" hidden></p>
<input id="${id}" name="${name}" type="${type}" autocomplete="${options.autocomplete}" required aria-describedby="${hint ? `${id}-hint ` : ""}${id}-fault" data-missing="${options.missing}"${attributesOf(options)}>
</div>`;
}

function attributesOf({ type, code, digits, autofocus, maxLength }: Field): Html {
  const isProse = type !== "email" && type !== "password" && !code;
  return html`${!isProse && html` autocapitalize="none" spellcheck="false"`}${code && html` class="code"`}${digits && html` inputmode="numeric"`}${maxLength && html` maxlength="${maxLength}"`}${autofocus && html` autofocus`}`;
}

export const passwordField = (options: Pick<Field, "label" | "missing" | "hint" | "autocomplete">): Html =>
  html`${field({ name: "password", type: "password", ...options })}
<div class="check"><input type="checkbox" id="show-password" data-shows="password"><label for="show-password">Show password</label></div>`;

export const newPasswordField: Html = passwordField({
  label: "Password",
  hint: "At least 8 characters, and not used on another site. A password manager can create and store it for you.",
  autocomplete: "new-password",
  missing: "Choose a password.",
});

export interface Form {
  id: string;
  fields?: Html;
  submit: string;
  secondary?: boolean;
  /** The page's script reads it as `form.dataset`. */
  returnTo?: string;
}

/**
 * A form that a script sends. The button stays disabled until the script has loaded, so that no input is lost.
 * `method="post"` keeps a password out of the URL even without the script.
 */
export const form = ({ id, fields, submit, secondary, returnTo }: Form): Html =>
  html`<form id="${id}" method="post" novalidate${returnTo !== undefined && html` data-return-to="${returnTo}"`}>
<div class="summary" role="alert" tabindex="-1" hidden></div>
${fields}
<button class="button ${secondary ? "" : "primary "}wide" disabled>${submit}</button>
<p class="progress small" role="status"></p>
<p class="waiting">The page is still loading. The button works as soon as it is done.</p>
<noscript><p class="notice bad">This needs JavaScript: please allow it for this site.</p></noscript>
</form>`;
