import { mkdir, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { until } from "@stoa/service/test/until.ts";

/** A folder that all files of a run share; the runner creates and deletes it. */
export const SHARED = process.env["STOA_TEST_SHARED"]!;

const LIMIT_MS = 270_000;

/** Runs `work` once for all files of a run; the others wait. After a failure, the next one tries again. */
export async function once(what: string, work: () => Promise<unknown>): Promise<void> {
  const begun = join(SHARED, `${what} begun`);
  const done = join(SHARED, `${what} done`);
  await until(
    what,
    async () => {
      if (await exists(done)) return true;
      if (!(await isOurs(begun))) return false;
      try {
        await work();
        await mkdir(done);
      } catch (error) {
        await rmdir(begun);
        throw error;
      }
      return true;
    },
    LIMIT_MS,
  );
}

const exists = (path: string) =>
  stat(path).then(
    () => true,
    () => false,
  );

const isOurs = (mark: string) =>
  mkdir(mark).then(
    () => true,
    () => false,
  );
