/** The parts of autocannon that load.ts uses; it ships no types. */
declare module "autocannon" {
  import type { EventEmitter } from "node:events";

  interface Request {
    method: string;
    path: string;
    headers?: Record<string, string>;
    body?: string;
  }
  export interface Client {
    setRequests(requests: Request[]): void;
  }
  interface Options {
    url: string;
    connections: number;
    duration?: number;
    amount?: number;
    timeout?: number;
    sampleInt?: number;
    setupClient(client: Client): void;
  }
  interface Result {
    duration: number;
    errors: number;
    timeouts: number;
  }
  interface Instance extends EventEmitter {
    stop(): void;
  }
  export default function autocannon(
    options: Options,
    done: (error: Error | null, result: Result) => void,
  ): Instance;
}
