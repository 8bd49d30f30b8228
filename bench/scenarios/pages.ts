import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import chromium from "@sparticuz/chromium";
import { createLog } from "@stoa/service/core/log.ts";
import { WebBuilds } from "@stoa/service/web/builds/web-builds.ts";
import type { Options } from "../options.ts";
import { installFrom, QUIETLY } from "../peers/installing.ts";
import { atEnd, start } from "../processes.ts";
import { ms, type Report } from "../report.ts";
import { openShop, type Shop } from "../shop.ts";

const FOLDER = join(tmpdir(), "stoa-bench-lighthouse");
const CATEGORIES = ["performance", "accessibility", "best-practices", "seo"] as const;
const LEAST_SCORE = 95;

/** Lighthouse's presets. Its phone has a CPU that is four times slower, and a slow connection. */
const DEVICES = {
  desktop: { flags: ["--preset=desktop"], lcpMs: 1_000 },
  phone: { flags: [], lcpMs: 2_500 },
};
const MAX_SHIFT = 0.01;

interface Measured {
  lcp: number;
  blocking: number;
  shift: number;
  bytes: number;
  scores: number[];
}

/** Ten pages of the web client in Lighthouse, on a marketplace with 10,000 products. */
export async function measurePages(options: Options): Promise<Report> {
  await installFrom(new URL("../lighthouse/", import.meta.url), FOLDER);
  await new WebBuilds().ensureCurrent(createLog("warn"));
  const shop = await openShop(options);
  const rows: string[][] = [];
  for (const [page, path] of Object.entries(await pagesOf(shop)))
    for (const [device, { flags, lcpMs }] of Object.entries(DEVICES)) {
      if (!options.questions.test(`${page} ${device}`)) continue;
      const measured = await runLighthouse(shop, path, flags);
      rows.push([page, device, ...cellsOf(measured, lcpMs)]);
    }
  return {
    columns: ["page", "device", "LCP", "blocking", "shift", "sent", "scores", "aims met"],
    rows,
    notes: [
      `Scores: ${CATEGORIES.join(", ")}. Aims: every score ${LEAST_SCORE} or more, LCP within 1.0 s (desktop) and 2.5 s (phone), shift within ${MAX_SHIFT}. Pages of members and of search results are not for search engines, so that their last score is not counted.`,
    ],
  };
}

async function pagesOf({ origin, products, session, words }: Shop): Promise<Record<string, string>> {
  const [id] = products;
  const headers = { cookie: `__Host-session=${session}`, "sec-fetch-site": "same-origin" };
  const reply = await fetch(`${origin}/v1/products/${id}`, { headers });
  const { data } = (await reply.json()) as { data: { author: { id: string; handle: string | null } } };
  return {
    home: "/",
    search: `/search?q=${encodeURIComponent(words.common)}`,
    product: `/p/${id}`,
    seller: `/u/${data.author.handle ?? data.author.id}`,
    checkout: `/checkout/${id}`,
    library: "/library",
    account: "/account",
    "API keys": "/settings/api",
    webhooks: "/settings/webhooks",
    "request log": "/settings/logs",
  };
}

const isForMembers = (path: string): boolean => !/^\/($|search|p\/|u\/)/.test(path);

async function runLighthouse({ origin, session }: Shop, path: string, flags: string[]): Promise<Measured> {
  const report = join(FOLDER, "report.json");
  // The graphics card is emulated slowly, and no page needs it.
  chromium.setGraphicsMode = false;
  const chromePath = process.env["CHROMIUM_PATH"] ?? (await chromium.executablePath());
  const headers = isForMembers(path) ? { Cookie: `__Host-session=${session}` } : {};
  const lighthouse = start(
    process.execPath,
    [
      join(FOLDER, "node_modules/lighthouse/cli/index.js"),
      origin + path,
      "--quiet",
      "--output=json",
      `--output-path=${report}`,
      `--only-categories=${CATEGORIES.join(",")}`,
      `--extra-headers=${JSON.stringify(headers)}`,
      "--chrome-flags=--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage",
      ...flags,
    ],
    { cwd: FOLDER, env: { ...QUIETLY, CHROME_PATH: chromePath }, errors: "inherit" },
  );
  atEnd(() => lighthouse.end());
  await lighthouse.output();
  const { audits, categories } = JSON.parse(await readFile(report, "utf8"));
  const numberOf = (audit: string): number => audits[audit].numericValue;
  const counted = isForMembers(path) || path.startsWith("/search") ? CATEGORIES.slice(0, -1) : CATEGORIES;
  return {
    lcp: numberOf("largest-contentful-paint"),
    blocking: numberOf("total-blocking-time"),
    shift: numberOf("cumulative-layout-shift"),
    bytes: numberOf("total-byte-weight"),
    scores: counted.map((category) => Math.round(categories[category].score * 100)),
  };
}

function cellsOf({ lcp, blocking, shift, bytes, scores }: Measured, lcpMs: number): string[] {
  const isMet = lcp <= lcpMs && shift <= MAX_SHIFT && scores.every((score) => score >= LEAST_SCORE);
  return [
    `${ms(lcp)} ms`,
    `${ms(blocking)} ms`,
    shift.toFixed(3),
    `${Math.round(bytes / 1000)} kB`,
    scores.join(" "),
    isMet ? "yes" : "**no**",
  ];
}
