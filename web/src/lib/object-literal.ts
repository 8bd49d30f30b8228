/** A request's body as people write it in TypeScript: `stoa.ai.execute({ … })`. */
export const literalOf = (body: object): string =>
  JSON.stringify(body, null, 2).replace(/^(\s*)"([A-Za-z_$][\w$]*)":/gm, "$1$2:");
