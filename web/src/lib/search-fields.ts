import { oneOf, textOf } from "../routes/search-params.ts";

type Given = Record<string, unknown>;

const MAX_TEXT = 100;
type Parameter<N extends string, V> = { [name in N]?: V };

const parameter = <N extends string, V>(name: N, value: V | undefined): Parameter<N, V> =>
  value === undefined ? {} : ({ [name]: value } as Parameter<N, V>);

/** `?search=ada` */
export const textParam = <N extends string>(given: Given, name: N): Parameter<N, string> =>
  parameter(name, textOf(given[name], MAX_TEXT));

/** `?status=open`: one of some values. */
export const choiceParam = <N extends string, V extends string>(
  given: Given,
  name: N,
  values: readonly V[],
): Parameter<N, V> => parameter(name, oneOf(given[name], values));

const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** `?from=2026-11-23` */
export const dayParam = <N extends string>(given: Given, name: N): Parameter<N, string> => {
  const day = String(given[name]);
  return parameter(name, DAY.test(day) && !Number.isNaN(Date.parse(day)) ? day : undefined);
};
