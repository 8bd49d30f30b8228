import { askSignedIn, byId, findForm, showCard, whenSent } from "./form.js";

/** @type {string[]} */
let codes = [];
const kept = /** @type {HTMLInputElement | null} */ (document.getElementById("kept"));

whenSent(findForm("begin"), async () => {
  const { secret, otpauthUri, qrCode } = await askSignedIn("POST", "/v1/account/two-factor");
  byId("qr").setAttribute("src", qrCode);
  byId("secret").textContent = secret.replaceAll(/(.{4})(?=.)/g, "$1 ");
  byId("otpauth").setAttribute("href", otpauthUri);
  showCard("scanning");
});

const withoutSpaces = (/** @type {string} */ code) => ({ code: code.replaceAll(/\s/g, "") });

whenSent(findForm("confirmation"), async ({ code }) =>
  showCodes(await askSignedIn("POST", "/v1/account/two-factor/confirm", withoutSpaces(code))),
);

whenSent(findForm("renewal"), async ({ code }) =>
  showCodes(await askSignedIn("POST", "/v1/account/two-factor/backup-codes", withoutSpaces(code))),
);

whenSent(findForm("removal"), async ({ code }) => {
  await askSignedIn("DELETE", "/v1/account/two-factor", withoutSpaces(code));
  showCard("removed");
});

/** @param {{ backupCodes: string[] }} answer */
function showCodes({ backupCodes }) {
  codes = backupCodes;
  byId("codes").replaceChildren(...codes.map(codeItem));
  showCard("keeping");
}

/** @param {string} code */
function codeItem(code) {
  const item = document.createElement("li");
  item.textContent = code;
  return item;
}

/** The saved text explains itself. */
const asText = () => `Backup codes for Stoa (${location.host})\nEach works once.\n\n${codes.join("\n")}\n`;

document.getElementById("copy")?.addEventListener("click", async () => {
  const isCopied = await navigator.clipboard?.writeText(asText()).then(
    () => true,
    () => false,
  );
  byId("copied").textContent = isCopied
    ? "Copied."
    : "The browser did not let us copy: mark the codes yourself.";
});

document.getElementById("download")?.addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([asText()], { type: "text/plain" }));
  link.download = "stoa-backup-codes.txt";
  link.click();
  URL.revokeObjectURL(link.href);
});

document.getElementById("print")?.addEventListener("click", () => print());

kept?.addEventListener("change", () => {
  const leave = byId("leave");
  leave.setAttribute("aria-disabled", String(!kept.checked));
  if (kept.checked) leave.setAttribute("href", leave.dataset.href ?? "/auth/signed-in");
  else leave.removeAttribute("href");
});

addEventListener("beforeunload", (event) => {
  if (codes.length > 0 && !kept?.checked) event.preventDefault();
});
