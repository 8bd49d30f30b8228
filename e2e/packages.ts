import assert from "node:assert/strict";
import { once, SHARED } from "./once.ts";
import { shell } from "./service-process.ts";

/** Installs a packed package in a folder, as a user does. */
async function install(path: string, name: "sdk" | "cli"): Promise<void> {
  await once("packing the packages", () =>
    mustRun(
      `npm run build && npm pack --workspace=@stoa/sdk --workspace=@stoa/cli --pack-destination=${SHARED}`,
    ),
  );
  await mustRun(`cd ${path} && npm init -y && npm install --offline --no-audit ${SHARED}/stoa-${name}-*.tgz`);
}

export const installSdk = (path: string) => install(path, "sdk");
export const installCommandLine = (path: string) => install(path, "cli");

async function mustRun(line: string): Promise<void> {
  const { code, stderr } = await shell(line, {});
  assert.equal(code, 0, stderr);
}
