import { RedirectUri, toVisibleLine } from "@stoa/contract";
import { errors } from "oidc-provider";
import { isLoopbackUri, listHosts } from "./redirect-uris.ts";

/** All other metadata is dropped: it would make the server fetch, show or trust something. */
const ACCEPTED_METADATA = [
  "client_id",
  "client_id_issued_at",
  "client_name",
  "redirect_uris",
  "post_logout_redirect_uris",
  "grant_types",
  "response_types",
  "id_token_signed_response_alg",
];
const GRANT_TYPES = ["authorization_code", "refresh_token"];
const MAX_REDIRECT_URIS = 10;
const MAX_NAME = 100;

const invalidMetadata = (reason: string) => new errors.InvalidClientMetadata(reason);

/**
 * Registration needs no account, so a client only gets the right to ask users: it is public, uses PKCE, and redirects
 * to https or to the user's machine.
 */
export function restrictClientMetadata(metadata: Record<string, unknown>): void {
  if (metadata["token_endpoint_auth_method"] !== "none")
    throw invalidMetadata(
      "token_endpoint_auth_method must be none: clients with a secret are made by POST /v1/oauth-clients",
    );
  for (const name of Object.keys(metadata)) if (!ACCEPTED_METADATA.includes(name)) delete metadata[name];
  const redirects = readRedirectUris(metadata, "redirect_uris");
  if (redirects.length === 0) throw invalidMetadata("redirect_uris must contain members");
  readRedirectUris(metadata, "post_logout_redirect_uris");
  metadata["grant_types"] = readGrantTypes(metadata);
  metadata["client_name"] = readClientName(metadata) ?? listHosts(redirects)[0];
  metadata["token_endpoint_auth_method"] = "none";
  metadata["application_type"] = redirects.some(isLoopbackUri) ? "native" : "web";
}

function readRedirectUris(metadata: Record<string, unknown>, name: string): string[] {
  const uris = metadata[name] ?? [];
  if (!Array.isArray(uris) || uris.length > MAX_REDIRECT_URIS)
    throw invalidMetadata(`${name} must be a list of at most ${MAX_REDIRECT_URIS}`);
  for (const uri of uris) {
    const problem = RedirectUri.safeParse(uri).error?.issues[0];
    if (problem) throw invalidMetadata(`${name}: ${problem.message}`);
  }
  return uris;
}

function readGrantTypes({ grant_types: grantTypes }: Record<string, unknown>): string[] {
  if (
    Array.isArray(grantTypes) &&
    grantTypes.includes("authorization_code") &&
    grantTypes.every((type) => GRANT_TYPES.includes(type))
  )
    return grantTypes;
  throw invalidMetadata("grant_types must contain authorization_code, and can contain refresh_token");
}

/** One line of visible text, since the consent page shows it. */
function readClientName({ client_name: name }: Record<string, unknown>): string | null {
  if (typeof name !== "string") return null;
  return [...toVisibleLine(name)].slice(0, MAX_NAME).join("") || null;
}
