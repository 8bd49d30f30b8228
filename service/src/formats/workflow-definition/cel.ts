import type { CelFunc, parse as parseCel } from "@bufbuild/cel";
import { createCustomFunctions } from "./cel-functions.ts";

export type Parse = typeof parseCel;
export type Expr = NonNullable<ReturnType<Parse>["expr"]>;
export type Call = Extract<Expr["exprKind"], { case: "callExpr" }>["value"];
export type Comprehension = Extract<Expr["exprKind"], { case: "comprehensionExpr" }>["value"];
export type CelLibrary = typeof import("@bufbuild/cel");

export interface Cel extends CelLibrary {
  functions: readonly CelFunc[];
}

let loaded: Promise<Cel> | undefined;

/** The library takes 100 ms and about 25 MB, so the first workflow loads it. */
export function loadCel(): Promise<Cel> {
  loaded ??= load();
  return loaded;
}

async function load(): Promise<Cel> {
  const [library, { strings }] = await Promise.all([import("@bufbuild/cel"), import("@bufbuild/cel/ext")]);
  return {
    ...library,
    functions: [...library.celEnv({ funcs: [...strings, ...createCustomFunctions(library)] }).funcs],
  };
}
