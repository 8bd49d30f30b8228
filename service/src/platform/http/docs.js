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
window.SwaggerUIBundle({
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
