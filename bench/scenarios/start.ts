import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { childrenOf, type Memory, memoryOf } from "../memory.ts";
import { atEnd, type Started, start } from "../processes.ts";
import { median } from "../quantile.ts";
import { comparedWithAim, megabytes, type Report } from "../report.ts";

const ROUNDS = 3;
const ASK_AGAIN_MS = 20;
const AT_REST_MS = 10_000;
/** Most of the demo loads after the box of a first start; a warm start loads nothing. */
const AIM = { firstSeconds: 3, warmSeconds: 1.5, memoryBytes: 160e6 };

interface Times {
  ready: number;
  box: number;
}

/** `npm start` in a new data folder and again in the same one, up to /readyz and to the printed box. */
export async function measureStart(): Promise<Report> {
  const first: Times[] = [];
  const warm: Times[] = [];
  const memory: Memory[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const dataDir = await mkdtemp(join(tmpdir(), "stoa-bench-start-"));
    atEnd(() => rm(dataDir, { recursive: true, force: true }));
    first.push((await startOnce(dataDir, (npm) => npm.waitForLine(/the demo shop is loaded/))).times);
    const again = await startOnce(dataDir, () => sleep(AT_REST_MS));
    warm.push(again.times);
    memory.push(again.memory);
  }
  const all = (times: Times[], which: keyof Times) => times.map((time) => time[which]);
  const row = (what: string, seconds: number[], aim: number) => [
    what,
    ...comparedWithAim(`${median(seconds).toFixed(2)} s`, `≤ ${aim} s`, median(seconds) <= aim),
    seconds.map((value) => value.toFixed(2)).join(", "),
  ];
  const rss = median(memory.map(({ rssBytes }) => rssBytes));
  return {
    columns: ["what", "median", "aim", "met", "every run"],
    rows: [
      row("first start to /readyz 200", all(first, "ready"), AIM.firstSeconds),
      row("first start to the box", all(first, "box"), AIM.firstSeconds),
      row("warm start to /readyz 200", all(warm, "ready"), AIM.warmSeconds),
      row("warm start to the box", all(warm, "box"), AIM.warmSeconds),
      [
        "memory of Node at rest (RSS)",
        ...comparedWithAim(
          `${megabytes(rss)} MB`,
          `≤ ${megabytes(AIM.memoryBytes)} MB`,
          rss <= AIM.memoryBytes,
        ),
        memory.map(({ rssBytes }) => megabytes(rssBytes)).join(", "),
      ],
      [
        "of that private to the process",
        ...[`${megabytes(median(memory.map(({ privateBytes }) => privateBytes)))} MB`, "", ""],
        memory.map(({ privateBytes }) => megabytes(privateBytes)).join(", "),
      ],
    ],
    notes: [
      "From the spawn of `npm start`, npm's own time included. The warm start is of a shop whose demo is loaded; memory is read 10 s after it, when an idle process has collected its heap.",
    ],
  };
}

async function startOnce(dataDir: string, linger: (npm: Started) => Promise<unknown>) {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const begun = performance.now();
  const since = () => (performance.now() - begun) / 1000;
  const npm = start("npm", ["start"], {
    env: { STOA_DATA_DIR: dataDir, PORT: String(port), DATABASE_URL: "", STOA_ENVIRONMENT: "test" },
    errors: "read",
  });
  const [ready, box] = await Promise.all([
    untilReady(origin).then(since),
    npm.waitForLine(/^curl /).then(since),
  ]);
  await linger(npm);
  const memory = await memoryOf(await nodeUnder(npm.pid));
  await npm.end();
  return { times: { ready, box }, memory };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function untilReady(origin: string): Promise<void> {
  for (;;) {
    const reply = await fetch(`${origin}/readyz`).catch(() => null);
    await reply?.body?.cancel();
    if (reply?.status === 200) return;
    await sleep(ASK_AGAIN_MS);
  }
}

/** npm's shell `exec`s Node (package.json), and npm forwards signals. */
async function nodeUnder(npm: number): Promise<number> {
  const [node] = await childrenOf(npm);
  if (node === undefined) throw new Error("npm start runs no Node");
  return node;
}
