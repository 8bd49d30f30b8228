import type { VersionReport } from "@stoa/contract";
import { sql } from "kysely";
import type { Context } from "../../core/context.ts";
import { VERSION } from "../../core/version.ts";
import { readSchemaState } from "../../platform/db/migrate.ts";
import { readChangelog, selectReleases } from "./release-notes.ts";

/** At each start of the service. A process with an older clock changes nothing. */
export const recordVersionStart = ({ db, now }: Pick<Context, "db" | "now">, version = VERSION) =>
  db
    .insertInto("serviceVersions")
    .values({ version, firstStartedAt: now(), lastStartedAt: now() })
    .onConflict((conflict) =>
      conflict.column("version").doUpdateSet({
        lastStartedAt: sql`greatest(service_versions.last_started_at, excluded.last_started_at)`,
      }),
    )
    .execute();

export async function readVersionReport(ctx: Context): Promise<VersionReport> {
  const versions = await ctx.db
    .selectFrom("serviceVersions")
    .selectAll()
    .orderBy("lastStartedAt", "desc")
    .orderBy("version", "desc")
    .execute();
  const previous = versions.find(({ version }) => version !== VERSION)?.version ?? null;
  const { migrations, outdatedFunctions } = await readSchemaState(ctx.pool);
  return {
    version: VERSION,
    previousVersion: previous,
    versions: versions.map(({ version, firstStartedAt, lastStartedAt }) => ({
      version,
      firstStartedAt: firstStartedAt.toISOString(),
      lastStartedAt: lastStartedAt.toISOString(),
    })),
    migrations: migrations.map(({ appliedAt, ...migration }) => ({
      ...migration,
      appliedAt: appliedAt?.toISOString() ?? null,
    })),
    outdatedFunctions,
    releases: selectReleases(await readChangelog(), VERSION, previous),
  };
}
