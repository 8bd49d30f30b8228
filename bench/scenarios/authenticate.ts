import { verifyPassword } from "@stoa/service/accounts/people/password-hash.ts";
import type { Lane } from "../load.ts";
import { type Measured, measure } from "../measure.ts";
import type { Options } from "../options.ts";
import { median, quantilesOf } from "../quantile.ts";
import { ms, type Report } from "../report.ts";
import { PASSWORD, type Seeded } from "../seed.ts";
import { openShop, type Shop } from "../shop.ts";

const ROUNDS = 6;
const WARM_UP_SECONDS = 2;
const SECONDS = 3;
const CONNECTIONS = 16;
/** Cheap and read-only, so that the cost of authentication is visible. */
const pathIn = ({ products }: Shop) => `/v1/products/${products[0]}/reviews`;
/** The service's limit of parallel hashes. */
const HASHES_AT_ONCE = 2;

/** A row of the table, and the row to compare it with. */
interface Kind {
  name: string;
  beside: Kind | null;
  measure(seconds: number): Promise<Measured>;
}

/** The same request with each kind of credential, and sign-in compared with its hash, in turns of a few seconds. */
export async function measureAuthenticate(options: Options): Promise<Report> {
  const shop = await openShop(options);
  const kinds = kindsOf(shop);
  const results = new Map<Kind, Measured[]>(kinds.map((kind) => [kind, []]));
  for (const kind of kinds) await kind.measure(WARM_UP_SECONDS);
  for (let round = 0; round < ROUNDS; round++) {
    // Alternates the order, so that no kind always follows the same one.
    for (const kind of round % 2 ? kinds.toReversed() : kinds)
      results.get(kind)!.push(await kind.measure(SECONDS));
  }
  return reportOf(results);
}

function kindsOf(shop: Shop): Kind[] {
  const kind = (name: string, beside: Kind | null, lanes: Lane[], connections = CONNECTIONS): Kind => ({
    name,
    beside,
    measure: (seconds) => measure(shop, { seconds, connections, lanes }),
  });
  const gets = (headers: Record<string, string>): Lane[] => [
    [{ method: "GET", path: pathIn(shop), headers }],
  ];
  const visitor = kind("reviews of a product, visitor", null, gets({ cookie: shop.visitor }));
  const hash: Kind = {
    name: `Argon2id alone, ${HASHES_AT_ONCE} at a time`,
    beside: null,
    measure: (seconds) => measureHashes(shop, seconds),
  };
  const logins = shop.logins.map(loginOf);
  return [
    kind("`GET /healthz`, nobody is asked", visitor, [[{ method: "GET", path: "/healthz" }]]),
    visitor,
    kind("reviews of a product, API key", visitor, gets({ authorization: `Bearer ${shop.reader}` })),
    kind("reviews of a product, session", visitor, gets({ authorization: `Bearer ${shop.session}` })),
    hash,
    kind("`POST /api/auth/login`, one at a time", hash, logins, 1),
    kind(`\`POST /api/auth/login\`, ${logins.length} people at a time`, hash, logins, logins.length),
  ];
}

const loginOf = (email: string): Lane => [
  {
    method: "POST",
    path: "/api/auth/login",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ email, password: PASSWORD }),
  },
];

async function measureHashes({ passwordHash }: Seeded, seconds: number): Promise<Measured> {
  const times: number[] = [];
  const cpu = process.cpuUsage();
  const begun = performance.now();
  const hashOn = async () => {
    for (let from = begun; from < begun + seconds * 1000; from = performance.now()) {
      if (!(await verifyPassword(passwordHash, PASSWORD)))
        throw new Error("the password does not fit its hash");
      times.push(performance.now() - from);
    }
  };
  await Promise.all(Array.from({ length: HASHES_AT_ONCE }, hashOn));
  const { user, system } = process.cpuUsage(cpu);
  return {
    requests: times.length,
    failed: 0,
    perSecond: (times.length * 1000) / (performance.now() - begun),
    ...quantilesOf(times),
    nodeMs: (user + system) / 1000 / times.length,
    databaseMs: 0,
  };
}

function reportOf(results: Map<Kind, Measured[]>): Report {
  const rows = [...results].map(([{ name, beside }, own]) => {
    const middle = (which: keyof Measured) => median(own.map((result) => result[which]));
    const others = beside && results.get(beside)!;
    const ratios = others?.map(({ perSecond }, round) => own[round]!.perSecond / perSecond);
    return [
      name,
      ...[middle("perSecond").toFixed(0), ms(middle("p50")), ms(middle("p95"))],
      ...[middle("nodeMs").toFixed(3), middle("databaseMs").toFixed(3)],
      ratios ? median(ratios).toFixed(2) : "1",
    ];
  });
  return {
    columns: ["request", "per second", "p50 ms", "p95 ms", "Node CPU ms", "PostgreSQL CPU ms", "ratio"],
    rows,
    notes: [
      `${CONNECTIONS} connections where nothing else is said, ${ROUNDS} rounds of ${SECONDS} s in turn, medians; \`ratio\` is the median of each round's own ratio of requests per second: to the visitor's request above, to the hash alone below.`,
    ],
  };
}
