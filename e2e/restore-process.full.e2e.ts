import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { backUpTo, PASSPHRASE, queryAt, shopOf } from "@stoa/service/test/backup-files.ts";
import { createDraft } from "@stoa/service/test/factories.ts";
import { freePort } from "@stoa/service/test/free-port.ts";
import {
  type Client,
  createDatabase,
  type Market,
  openMarket,
  type TestDatabase,
} from "@stoa/service/test/market.ts";
import { becomes, until } from "@stoa/service/test/until.ts";
import { environmentWith, temporaryFolder } from "./service-process.ts";

const root = new URL("../", import.meta.url).pathname;

let shop: Market;
let seller: Client;
let productId: string;
let database: TestDatabase;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let service: ChildProcess | null = null;
let output = "";
before(async () => {
  [shop, database, folder] = [
    await openMarket({ config: { environment: "production" } }),
    await createDatabase(),
    await temporaryFolder(),
  ];
  seller = await shop.createUser();
  productId = await createDraft(seller);
});
after(async () => {
  if (service) await stopService(service);
  await shop.close();
  await database.drop();
  await folder.remove();
});

const ended = (child: ChildProcess) => new Promise<number | null>((resolve) => child.once("exit", resolve));

async function stopService(child: ChildProcess): Promise<number | null> {
  const code = ended(child);
  child.kill("SIGTERM");
  return code;
}

/** A production service with workers on an empty database. Resolves to its address and the token that it prints. */
async function startEmpty(): Promise<{ origin: string; token: string }> {
  const { masterKeys, sessionKeys } = shop.service.ctx.config;
  const port = await freePort();
  const child = spawn(process.execPath, ["service/bin/stoa-server.mjs", "start"], {
    cwd: root,
    env: environmentWith({
      STOA_ENVIRONMENT: "production",
      STOA_MAIL: "off",
      PORT: String(port),
      STOA_DATA_DIR: folder.path,
      DATABASE_URL: database.url,
      STOA_MASTER_KEYS: masterKeys.map(({ id, bytes }) => `${id}:${bytes.toString("base64")}`).join(","),
      STOA_SESSION_KEYS: sessionKeys.map((bytes, at) => `${at}:${bytes.toString("base64")}`).join(","),
    }),
  });
  service = child;
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  const link = await until("the link of the first administrator", () => {
    assert.equal(child.exitCode, null, output);
    return /first-admin#token=([\w-]+)$/m.exec(output);
  });
  return { origin: `http://127.0.0.1:${port}`, token: link[1] ?? "" };
}

async function call(url: string, init: RequestInit = {}) {
  const reply = await fetch(url, init);
  const { data } = (await reply.json()) as { data: Record<string, unknown> };
  assert.ok(reply.ok, `${reply.status} ${url}`);
  return data;
}

const jsonPost = (body: object) => ({
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify(body),
});

test("a restore over HTTP: the process starts the service again with the restored data, its workers included", async () => {
  const path = join(folder.path, "shop.tar.gz");
  await backUpTo(path, shopOf(shop), { passphrase: PASSPHRASE });
  const bytes = await readFile(path);
  const { origin, token } = await startEmpty();
  const restores = `${origin}/api/auth/restores`;
  const file = { fileName: "shop.tar.gz", size: bytes.length };
  const { id } = await call(restores, jsonPost({ token, ...file }));
  const form = new FormData();
  form.set("offset", "0");
  form.set("file", new File([new Uint8Array(bytes)], "part"));
  await call(`${restores}/${id}/parts`, { method: "POST", body: form });
  await call(`${restores}/${id}/start`, jsonPost({}));
  const done = await becomes(
    // The port is closed for a moment.
    () => call(`${restores}/${id}`).catch(() => null),
    (restore) => restore?.["status"] === "succeeded" || restore?.["status"] === "failed",
  );
  assert.equal(done?.["status"], "succeeded", `${done?.["error"]}\n${output}`);
  const product = await call(`${origin}/v1/products/${productId}`, {
    headers: { authorization: `Bearer ${seller.key}` },
  });
  assert.equal(product["id"], productId);
  assert.match(output, /starting again after a restore/);
  await until("the workers run", async () => (await fetch(`${origin}/readyz`)).ok);
  await until("a job has run", async () => {
    const rows = await queryAt(database, "select from job_runs where last_success_at is not null limit 1");
    return rows.length > 0;
  });
  assert.equal(service && (await stopService(service)), 0, output);
  service = null;
});
