import { readdir, readFile } from "node:fs/promises";

export interface Memory {
  rssBytes: number;
  /** Without pages shared with other processes, such as Node's binary. */
  privateBytes: number;
  /** With a proportional share of shared pages, so that sums count nothing twice. */
  shareBytes: number;
}

export async function memoryOf(pid: number): Promise<Memory> {
  const rollup = await readFile(`/proc/${pid}/smaps_rollup`, "utf8");
  const bytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(rollup)?.[1]) * 1024;
  return {
    rssBytes: bytes("Rss"),
    privateBytes: bytes("Private_Clean") + bytes("Private_Dirty"),
    shareBytes: bytes("Pss"),
  };
}

export async function childrenOf(parent: number): Promise<number[]> {
  const children: number[] = [];
  for (const pid of await readdir("/proc")) {
    const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
    if (Number(/^PPid:\s+(\d+)/m.exec(status)?.[1]) === parent) children.push(Number(pid));
  }
  return children;
}
