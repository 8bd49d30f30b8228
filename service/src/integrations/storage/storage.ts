import type { Readable } from "node:stream";

declare module "../../core/context.ts" {
  interface Integrations {
    storage: Storage;
  }
}

/** The port for file storage. Names are ours, never a user's. */
export interface Storage {
  /** A folder for uploads, on the same disk if storing is a rename. */
  incoming(): Promise<string>;
  /** Stores bytes, or moves a file of ours. An existing object with this name has the same bytes. */
  put(name: string, source: Buffer | { path: string }): Promise<void>;
  has(name: string): Promise<boolean>;
  /** null: no object has this name. `range` is inclusive at both ends. */
  get(name: string, range?: Range): Promise<Readable | null>;
  /** Does nothing if no object has this name. */
  remove(name: string): Promise<void>;
  /** Describes the working storage; throws StorageUnavailable when it does not work. */
  check(): Promise<string>;
  close(): Promise<void>;
}

export interface Range {
  start: number;
  end: number;
}

/** Temporary failure. */
export class StorageUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = "StorageUnavailable";
  }
}

const NAME = /^([0-9a-f]{64})-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The SHA-256 at the beginning of a name. Throws on other names, so that they reach no disk or bucket. */
export function digestIn(name: string): string {
  const digest = NAME.exec(name)?.[1];
  if (digest === undefined) throw new TypeError(`${name} is no name in the storage`);
  return digest;
}
