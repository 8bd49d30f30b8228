import type { FastifyRequest } from "fastify";

/** A browser that shows a page to somebody. */
export const wantsHtml = ({ headers }: FastifyRequest) => /\btext\/html\b/.test(headers.accept ?? "");

/** A program; whoever says nothing gets what people see. */
export const wantsJson = (request: FastifyRequest) =>
  /\bapplication\/json\b/.test(request.headers.accept ?? "") && !wantsHtml(request);
