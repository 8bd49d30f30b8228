/** Calls the service with one user's credential. Throws on an error response. */
export interface Client {
  get<Answer>(path: string): Promise<Answer>;
  /** A string is sent as JSON Lines. */
  post<Data>(path: string, body?: object | string): Promise<Data>;
  put<Data>(path: string, body: object): Promise<Data>;
  patch<Data>(path: string, body: object): Promise<Data>;
}

export function clientOf(origin: string, key: string): Client {
  const ask = async (method: string, path: string, body?: object | string): Promise<unknown> => {
    const type = typeof body === "string" ? "application/jsonl" : "application/json";
    const response = await fetch(`${origin}${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { "content-type": type }) },
      ...(body && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer;
  };
  const dataOf = async <Data>(answer: Promise<unknown>) => ((await answer) as { data: Data }).data;
  return {
    get: (path) => ask("GET", path) as Promise<never>,
    post: (path, body) => dataOf(ask("POST", path, body)),
    put: (path, body) => dataOf(ask("PUT", path, body)),
    patch: (path, body) => dataOf(ask("PATCH", path, body)),
  };
}
