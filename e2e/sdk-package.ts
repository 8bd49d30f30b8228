import assert from "node:assert/strict";
import { once, SHARED } from "./once.ts";
import { shell } from "./service-process.ts";

/** Installs the packed SDK in a folder, as a user does. */
export async function installSdk(path: string): Promise<void> {
  await once("packing the SDK", () =>
    mustRun(`npm run build && npm pack --workspace=@stoa/sdk --pack-destination=${SHARED}`),
  );
  await mustRun(`cd ${path} && npm init -y && npm install --offline --no-audit ${SHARED}/stoa-sdk-*.tgz`);
}

async function mustRun(line: string): Promise<void> {
  const { code, stderr } = await shell(line, {});
  assert.equal(code, 0, stderr);
}
