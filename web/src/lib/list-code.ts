import { curlOf } from "./curl.ts";

type Filters = Record<string, string | number | boolean | undefined>;

/** The query of an address, without the "?". */
export const queryOf = (filters: object): string =>
  new URLSearchParams(Object.entries(filters).map(([name, value]) => [name, String(value)])).toString();

/** A list's request as code, with the filters of the page. */
export function listCode(path: string, method: string, filters: Filters): { curl: string; sdk: string } {
  const set = Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
  const query = queryOf(set);
  const argument = Object.keys(set).length === 0 ? "" : JSON.stringify(set);
  return {
    curl: curlOf("GET", path + (query && `?${query}`)),
    sdk: `for await (const item of stoa.${method}(${argument})) console.log(item);`,
  };
}
