/** Checks who imports whom inside the service: `npm run check` fails on a door through a wall. */
import { globSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const SOURCE = resolve(import.meta.dirname, "../service/src");

/** What each room stands on, from the ground up. A room enters only what is listed; files beside the rooms are open to all. */
const mayEnter: Record<string, string[]> = {
  db: [],
  jobs: ["db"],
  money: [],
  ledger: ["db"],
  receipts: ["money"],
  outside: ["money"],
  http: ["db"],
  prompts: ["outside"],
  workflows: ["outside", "http", "prompts"],
  audit: ["db", "http"],
  mail: ["db", "jobs", "http"],
  events: ["db", "http"],
  sessions: ["db", "http", "audit"],
  people: ["db"],
  "two-factor": ["db", "http", "audit", "mail", "sessions", "people"],
  keys: ["db", "http", "audit", "mail"],
  "sign-in": ["db", "outside", "http", "audit", "mail", "sessions", "people", "two-factor", "keys", "oauth"],
  webhooks: ["db", "jobs", "outside", "http", "audit", "mail", "people", "events"],
  pages: ["http", "sessions", "people", "two-factor"],
  oauth: ["db", "http", "audit", "mail", "sessions"],
  entitlements: ["db"],
  catalogue: ["db", "money", "http", "people"],
  products: [
    "db",
    "money",
    "catalogue",
    "http",
    "prompts",
    "audit",
    "mail",
    "workflows",
    "events",
    "people",
    "entitlements",
  ],
  transfer: ["db", "money", "http", "people", "catalogue", "products"],
  payments: ["db", "audit", "money", "jobs", "outside", "http"],
  payouts: [
    "db",
    "jobs",
    "money",
    "outside",
    "ledger",
    "payments",
    "http",
    "audit",
    "mail",
    "events",
    "people",
  ],
  plans: [
    "db",
    "jobs",
    "money",
    "outside",
    "ledger",
    "receipts",
    "payments",
    "http",
    "audit",
    "events",
    "mail",
    "people",
  ],
  files: ["db", "outside", "http", "people", "catalogue", "entitlements", "products"],
  analytics: ["db", "money", "ledger", "http", "people"],
  discounts: ["db", "money", "http", "products"],
  referrals: ["db", "money", "ledger", "http"],
  reviews: ["db", "http", "audit", "events", "people", "entitlements", "catalogue", "products"],
  purchases: [
    "db",
    "jobs",
    "money",
    "outside",
    "ledger",
    "receipts",
    "payments",
    "http",
    "audit",
    "mail",
    "events",
    "people",
    "entitlements",
    "catalogue",
    "products",
    "reviews",
    "discounts",
    "referrals",
    "analytics",
  ],
  ai: ["db", "outside", "http", "audit", "prompts", "workflows", "entitlements", "products"],
  engine: ["db", "outside", "http", "prompts", "workflows", "products", "webhooks", "ai"],
  openai: ["db", "http", "products", "ai"],
  mcp: ["db", "outside", "http", "workflows", "products", "ai", "engine"],
  account: [
    "db",
    "http",
    "audit",
    "mail",
    "sessions",
    "people",
    "two-factor",
    "keys",
    "sign-in",
    "oauth",
    "products",
    "transfer",
    "payments",
    "plans",
    "purchases",
    "payouts",
    "ai",
    "webhooks",
    "engine",
  ],
  admin: [
    "db",
    "analytics",
    "http",
    "audit",
    "sessions",
    "people",
    "two-factor",
    "sign-in",
    "oauth",
    "plans",
    "products",
    "webhooks",
    "engine",
  ],
  demo: ["db", "money", "catalogue", "prompts", "people", "products", "reviews", "purchases", "account"],
  backup: ["db", "jobs", "ledger", "outside", "files"],
  operator: [
    "backup",
    "db",
    "jobs",
    "ledger",
    "mail",
    "payments",
    "people",
    "keys",
    "admin",
    "demo",
    "transfer",
  ],
};

interface Import {
  from: string;
  to: string;
}

const IMPORT = /^(?:import|export)\b[^;]*?from "(\.{1,2}\/[^"]+)";/gms;
const roomOf = (file: string) => (file.includes("/") ? file.slice(0, file.indexOf("/")) : null);

const importsOf = (file: string): Import[] =>
  [...readFileSync(join(SOURCE, file), "utf8").matchAll(IMPORT)].map(([, path]) => ({
    from: file,
    to: relative(SOURCE, resolve(SOURCE, dirname(file), path!)),
  }));

function problemOf({ from, to }: Import): string | null {
  const [room, other] = [roomOf(from), roomOf(to)];
  if (room === null || other === null || room === other) return null;
  if (/\/([\w-]*queries|routes)\.ts$/.test(to))
    return "a room is entered by its nouns, not by its queries or routes";
  if (!mayEnter[room]) return `the room ${room} is not listed in scripts/walls.ts`;
  if (!mayEnter[room].includes(other)) return `${room} does not stand on ${other} (scripts/walls.ts)`;
  return null;
}

/** The rooms that can be reached from one; a circle reaches itself. */
function reachable(room: string, seen = new Set<string>()): Set<string> {
  for (const next of mayEnter[room] ?? []) {
    if (!seen.has(next)) reachable(next, seen.add(next));
  }
  return seen;
}

const files = globSync("**/*.ts", { cwd: SOURCE }).filter((file) => !file.endsWith(".test.ts"));
const imports = files.flatMap(importsOf);
const problems = imports.flatMap((one) => {
  const problem = problemOf(one);
  return problem ? [`${one.from} imports ${one.to}: ${problem}`] : [];
});
const circles = Object.keys(mayEnter).filter((room) => reachable(room).has(room));
if (circles.length > 0) problems.push(`the rooms ${circles.join(", ")} stand on each other in a circle`);
const used = new Set(imports.map(({ from, to }) => `${roomOf(from)} ${roomOf(to)}`));
for (const [room, others] of Object.entries(mayEnter)) {
  for (const other of others)
    if (!used.has(`${room} ${other}`)) problems.push(`${room} no longer needs ${other}`);
}
for (const problem of problems) console.error(problem);
if (imports.length === 0) console.error("no import was read: the pattern is broken");
process.exitCode = problems.length > 0 || imports.length === 0 ? 1 : 0;
