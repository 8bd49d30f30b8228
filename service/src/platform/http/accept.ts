import type { FastifyRequest } from "fastify";

/** A browser's navigation. */
export const wantsHtml = ({ headers }: FastifyRequest) => /\btext\/html\b/.test(headers.accept ?? "");

/** A program. A request without Accept gets the page. */
export const wantsJson = (request: FastifyRequest) =>
  /\bapplication\/json\b/.test(request.headers.accept ?? "") && !wantsHtml(request);
