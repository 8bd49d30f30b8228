import type { FastifyRequest } from "fastify";

/** For the navigation of a browser. */
export const wantsHtml = ({ headers }: FastifyRequest) => /\btext\/html\b/.test(headers.accept ?? "");

/** For programs. A request without Accept gets the page. */
export const wantsJson = (request: FastifyRequest) =>
  /\bapplication\/json\b/.test(request.headers.accept ?? "") && !wantsHtml(request);
