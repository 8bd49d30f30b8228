import assert from "node:assert/strict";
import {
  type CallToolResult,
  Client as McpClient,
  type OAuthClientProvider,
  type StoredOAuthClientInformation,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";
import type { Client, Market } from "./market.ts";
import { consent, signedInBrowser } from "./oauth.ts";

type DiscoveryState = Parameters<NonNullable<OAuthClientProvider["saveDiscoveryState"]>>[0];

/** The state of an MCP client, with a browser in which its user allows the consent. */
export class OAuthTestClient implements OAuthClientProvider {
  readonly redirectUrl = "http://127.0.0.1:7777/callback";
  readonly clientMetadata = {
    client_name: "Desk",
    redirect_uris: [this.redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  };
  information: StoredOAuthClientInformation | undefined;
  kept: StoredOAuthTokens | undefined;
  answer: URLSearchParams | undefined;
  asked: URL | undefined;
  #verifier = "";
  #discovery: DiscoveryState | undefined;
  readonly #market: Market;
  readonly #person: Client;

  constructor(market: Market, person: Client) {
    this.#market = market;
    this.#person = person;
  }

  clientInformation = () => this.information;
  saveClientInformation(information: StoredOAuthClientInformation) {
    this.information = information;
  }
  tokens = () => this.kept;
  saveTokens(tokens: StoredOAuthTokens) {
    this.kept = tokens;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier = () => this.#verifier;
  saveDiscoveryState(state: DiscoveryState) {
    this.#discovery = state;
  }
  discoveryState = () => this.#discovery;
  async redirectToAuthorization(url: URL) {
    this.asked = url;
    this.answer = await consent(await signedInBrowser(this.#market, this.#person.userId), url);
  }
}

/** The protocol before 2026-07-28, with a handshake, and since. */
export const eras = {
  "2025-11-25": "legacy",
  "2026-07-28": { pin: "2026-07-28" },
} as const;
export type Revision = keyof typeof eras;
export const revisions = Object.keys(eras) as Revision[];

export const mcpUrl = (origin: string) => new URL("/mcp", origin);

/** The official client in one revision, with a key in the header. */
export async function connectMcp(
  market: Pick<Market, "origin">,
  { key }: Pick<Client, "key">,
  revision: Revision = "2026-07-28",
): Promise<McpClient> {
  const client = new McpClient(
    { name: "tests", version: "1" },
    { versionNegotiation: { mode: eras[revision] } },
  );
  const requestInit = { headers: { authorization: `Bearer ${key}` } };
  await client.connect(new StreamableHTTPClientTransport(mcpUrl(market.origin), { requestInit }));
  return client;
}

/** The text that the model reads. */
export const textOf = ({ content }: CallToolResult): string =>
  content.map((block) => (block.type === "text" ? block.text : "")).join("\n");

/** The tool of the only product with this title. */
export async function toolFor(client: McpClient, title: string): Promise<string> {
  const { tools } = await client.listTools();
  const named = tools.filter((tool) => tool.title === title);
  assert.equal(named.length, 1, tools.map(({ name }) => name).join(" "));
  return named[0]!.name;
}

/** The prompt of the only product with this title. */
export async function promptFor(client: McpClient, title: string): Promise<string> {
  const { prompts } = await client.listPrompts();
  const named = prompts.filter((prompt) => prompt.title === title);
  assert.equal(named.length, 1, prompts.map(({ name }) => name).join(" "));
  return named[0]!.name;
}
