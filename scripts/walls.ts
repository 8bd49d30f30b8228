/**
 * Checks the imports inside the service against the layout of docs/architecture.md; part of `npm run check`. A group
 * imports only the groups above it in `groups`; each room lists the neighbors that it imports.
 */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const SOURCE = resolve(import.meta.dirname, "../service/src");

/** Groups with their rooms and the rooms' imports. A group may import all groups before it. */
const groups: Record<string, Record<string, string[]>> = {
  core: {},
  platform: {
    db: [],
    http: ["db"],
    audit: ["db", "http"],
    jobs: ["db"],
    email: ["db", "http", "jobs"],
    processes: ["http"],
  },
  integrations: {
    egress: [],
    "ai-providers": ["egress"],
    captcha: [],
    email: [],
    "identity-providers": [],
    payments: [],
    storage: [],
    taxes: [],
  },
  accounts: {
    people: [],
    notifications: ["people"],
    "api-keys": ["notifications"],
    "request-logs": [],
    sessions: ["notifications"],
    oauth: ["notifications", "sessions"],
    "two-factor": ["notifications", "sessions", "people"],
    pages: ["sessions", "people", "two-factor"],
    "sign-in": ["notifications", "api-keys", "sessions", "oauth", "people", "two-factor"],
  },
  events: {
    outbox: [],
    feed: ["outbox"],
    webhooks: ["outbox", "feed"],
  },
  formats: {
    "content-scan": [],
    "prompt-template": [],
    "workflow-definition": ["prompt-template"],
  },
  catalog: {
    entitlements: [],
    search: [],
    duplicates: [],
    products: ["entitlements", "search", "duplicates"],
    files: ["entitlements", "search", "products"],
    "import-export": ["search", "products"],
    reviews: ["entitlements", "search", "products"],
    sellers: ["search"],
    "test-sets": ["products"],
    wishlist: ["search", "products"],
  },
  commerce: {
    ledger: [],
    analytics: ["ledger"],
    charges: [],
    discounts: [],
    receipts: [],
    orders: ["ledger", "analytics", "charges", "receipts"],
    referrals: ["ledger"],
    refunds: ["charges", "orders"],
    checkout: ["charges", "discounts", "receipts", "orders", "referrals", "refunds"],
    disputes: ["charges", "orders", "refunds", "checkout"],
    payouts: ["ledger", "analytics", "charges", "receipts"],
    plans: ["ledger", "charges", "receipts"],
  },
  execution: {
    "provider-keys": [],
    executions: ["provider-keys"],
    "prompt-runs": ["provider-keys", "executions"],
    estimates: ["provider-keys", "prompt-runs"],
    "workflow-runs": ["provider-keys", "executions", "prompt-runs"],
    evaluations: ["provider-keys", "executions", "prompt-runs", "estimates", "workflow-runs", "run-receipts"],
    "try-outs": ["provider-keys", "prompt-runs"],
    mcp: ["executions", "prompt-runs", "workflow-runs", "evaluations"],
    "openai-api": ["executions", "prompt-runs"],
    "run-receipts": ["executions"],
  },
  web: {
    builds: [],
    pages: ["builds"],
    discovery: ["pages"],
  },
  backoffice: {
    admin: [],
    "account-closing": ["admin"],
    backup: [],
    demo: ["account-closing"],
    operation: ["admin", "backup", "operator"],
    operator: ["admin", "backup", "demo"],
  },
};

/** The files that assemble the service. Only the operator's commands may import them. */
const COMPOSITION = [
  "app.ts",
  "background-workers.ts",
  "base.ts",
  "integrations.ts",
  "job-kinds.ts",
  "jobs.ts",
  "keyring.ts",
];
const MAY_IMPORT_COMPOSITION = ["main.ts", "backoffice/backup", "backoffice/operator"];
/** Rooms that the assembling files must not import. */
const NOT_FOR_COMPOSITION = ["backoffice/backup", "backoffice/operator"];

interface Import {
  from: string;
  to: string;
}

const IMPORT = /^(?:import|export)\b[^;]*?from "(\.{1,2}\/[^"]+)";/gms;
const order = Object.keys(groups);

const importsOf = (file: string): Import[] =>
  [...readFileSync(join(SOURCE, file), "utf8").matchAll(IMPORT)].map(([, path]) => ({
    from: file,
    to: relative(SOURCE, resolve(SOURCE, dirname(file), path!)),
  }));

/** `commerce/orders`; the group for a group without rooms; the file itself outside of groups. */
function roomOf(file: string): string {
  const [group, room] = file.split("/");
  if (room === undefined || group === "core") return group!;
  return `${group}/${room}`;
}

function problemOf({ from, to }: Import): string | null {
  const [room, other] = [roomOf(from), roomOf(to)];
  if (room === other) return null;
  const [group, name] = room.split("/") as [string, string?];
  const [otherGroup, otherName] = other.split("/") as [string, string?];
  if (otherName === undefined && otherGroup !== "core")
    return COMPOSITION.includes(room) || MAY_IMPORT_COMPOSITION.includes(room)
      ? null
      : `only ${MAY_IMPORT_COMPOSITION.join(", ")} may import a file that assembles the service`;
  if (name === undefined && group !== "core")
    return COMPOSITION.includes(room) && NOT_FOR_COMPOSITION.includes(other)
      ? `${other} imports ${room}`
      : null;
  if (!groups[group]) return `the group ${group} is not listed in scripts/walls.ts`;
  if (group !== otherGroup) {
    if (order.indexOf(otherGroup) > order.indexOf(group)) return `${group} stands before ${otherGroup}`;
    return /\/([\w-]*queries|routes)\.ts$/.test(to) ? "another group's queries and routes are its own" : null;
  }
  if (!groups[group][name!]) return `the room ${room} is not listed in scripts/walls.ts`;
  if (to.endsWith("/routes.ts")) return "routes are for app.ts alone";
  return groups[group][name!]!.includes(otherName!) ? null : `${room} does not list ${otherName}`;
}

/** The rooms reachable from one; a room in a cycle reaches itself. */
function reachable(rooms: Record<string, string[]>, room: string, seen = new Set<string>()): Set<string> {
  for (const next of rooms[room] ?? []) {
    if (!seen.has(next)) reachable(rooms, next, seen.add(next));
  }
  return seen;
}

const files = globSync("**/*.ts", { cwd: SOURCE }).filter((file) => !file.endsWith(".test.ts"));
const imports = files.flatMap(importsOf);
const problems = imports.flatMap((one) => {
  const problem = problemOf(one);
  return problem ? [`${one.from} imports ${one.to}: ${problem}`] : [];
});
const used = new Set(imports.map(({ from, to }) => `${roomOf(from)} ${roomOf(to)}`));
for (const [group, rooms] of Object.entries(groups)) {
  for (const [room, others] of Object.entries(rooms)) {
    if (reachable(rooms, room).has(room)) problems.push(`${group}/${room} imports itself in a circle`);
    for (const other of others)
      if (!used.has(`${group}/${room} ${group}/${other}`))
        problems.push(`${group}/${room} no longer needs ${other}`);
  }
}
for (const problem of problems) console.error(problem);
if (imports.length === 0) console.error("no import was read: the pattern is broken");
process.exitCode = problems.length > 0 || imports.length === 0 ? 1 : 0;
