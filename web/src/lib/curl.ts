/** Paths that refuse API keys: a key manages neither keys nor the account. */
const SESSION_ONLY =
  /^\/(api-keys|oauth-clients|account\/(sessions|grants|two-factor|callback-secret)|admin)\b/;
const SESSION_ONLY_CHANGES = /^\/(account|notifications)\b/;

/** A request as people type it, with a placeholder for the key, or for the token of a session where keys are refused. */
export function curlOf(method: string, path: string, body?: object): string {
  const needsSession = SESSION_ONLY.test(path) || (method !== "GET" && SESSION_ONLY_CHANGES.test(path));
  const request = [
    method === "GET"
      ? `curl "${location.origin}/v1${path}"`
      : `curl -X ${method} "${location.origin}/v1${path}"`,
    `  -H "Authorization: Bearer ${needsSession ? "$STOA_SESSION_TOKEN" : "$STOA_API_KEY"}"`,
    ...(body ? ['  -H "Content-Type: application/json"', `  -d '${JSON.stringify(body)}'`] : []),
  ];
  const lines = request.join(" \\\n");
  return needsSession
    ? `# Refuses API keys: needs the token of a session that is signed in.\n${lines}`
    : lines;
}
