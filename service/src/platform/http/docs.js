/** Swagger UI's own filter knows tags only. This one searches every word in method, path, summary and tag of an operation. */
function filterOperations() {
  const textOf = (operation, tag) =>
    [
      operation.get("method"),
      operation.get("path"),
      operation.getIn(["operation", "summary"]),
      operation.getIn(["operation", "operationId"]),
      tag,
    ]
      .join(" ")
      .toLowerCase();
  return {
    fn: {
      opsFilter(taggedOperations, phrase) {
        const words = phrase.toLowerCase().split(/\s+/).filter(Boolean);
        return taggedOperations
          .map((group, tag) =>
            group.update("operations", (operations) =>
              operations.filter((operation) => words.every((word) => textOf(operation, tag).includes(word))),
            ),
          )
          .filter((group) => group.get("operations").size > 0);
      },
    },
  };
}

// Swagger UI on our own document. The entered key stays in this page.
const reference = window.SwaggerUIBundle({
  url: "/v1/openapi.json",
  dom_id: "#reference",
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  filter: true,
  plugins: [filterOperations],
  presets: [window.SwaggerUIBundle.presets.apis],
});

// Swagger UI renders the input with the operations, without a label.
const labelled = new MutationObserver(() => {
  const input = document.querySelector("#reference .operation-filter-input");
  if (!input) return;
  input.placeholder = "Filter operations: refund, post purchases, webhooks …";
  input.setAttribute("aria-label", "Filter operations by method, path, summary or tag");
  labelled.disconnect();
});
labelled.observe(document.getElementById("reference"), { childList: true, subtree: true });

const HOUR_MS = 3_600_000;
const testKey = document.getElementById("test-key");

/** A key of the account that is signed in, with every permission, filled in for the next hour. Visitors sign in first. */
async function createTestKey() {
  const permissions = {};
  for (const name of testKey.dataset.permissions.split(" ")) permissions[name] = true;
  const expiresAt = new Date(Date.now() + HOUR_MS).toISOString();
  const response = await fetch("/v1/api-keys", {
    method: "POST",
    headers: { "content-type": "application/json", "idempotency-key": crypto.randomUUID() },
    body: JSON.stringify({ name: "API reference, one hour", permissions, expiresAt }),
  });
  const { data, error } = await response.json();
  if (response.ok) reference.preauthorizeApiKey("bearer", data.key);
  // A visitor's cookie is valid, and belongs to no account.
  if (response.status === 401 || error?.details?.required === "account")
    location.assign("/auth/sign-in?returnTo=%2Fdocs");
  return response.ok
    ? "A key is filled in. It ends in an hour, and is listed under your API keys."
    : error.message;
}

testKey?.querySelector("button").addEventListener("click", async ({ target }) => {
  target.disabled = true;
  const message = await createTestKey().catch(() => "The service did not answer. Try again.");
  testKey.querySelector("output").textContent = message;
  target.disabled = false;
});
