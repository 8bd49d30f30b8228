import type { FastifyInstance } from "fastify";
import type { Context } from "../../core/context.ts";
import { ApiError } from "../../core/errors.ts";
import { sendStatic } from "../../platform/http/static-content.ts";

const YEAR_SECONDS = 31_536_000;

/** The files of the web client. Their names contain digests, so that they never change. */
export function addClientFiles(app: FastifyInstance, ctx: Context): void {
  app.get("/client/:name", async (request, reply) => {
    const content = await ctx.webBuilds.file((request.params as { name: string }).name);
    if (!content) throw new ApiError("NOT_FOUND");
    return sendStatic(request, reply, content, `public, max-age=${YEAR_SECONDS}, immutable`);
  });
}
