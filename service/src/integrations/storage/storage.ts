import type { Readable } from "node:stream";

declare module "../../core/context.ts" {
  interface Integrations {
    storage: Storage;
  }
}

/** The port for bytes: what the service asks of whoever keeps files. Names are ours, never a user's. */
export interface Storage {
  /** A folder for uploads that are not kept yet: where keeping them is a rename, on the same disk. */
  incoming(): Promise<string>;
  /** Keeps bytes, or a file of ours that may be moved away; what has this name already is these bytes. */
  put(name: string, source: Buffer | { path: string }): Promise<void>;
  has(name: string): Promise<boolean>;
  /** null: nothing has this name. `range` takes both ends with it. */
  get(name: string, range?: Range): Promise<Readable | null>;
  /** Nothing happens where nothing has this name. */
  remove(name: string): Promise<void>;
  /** Says who keeps files now; throws StorageUnavailable when nobody does. */
  check(): Promise<string>;
  close(): Promise<void>;
}

export interface Range {
  start: number;
  end: number;
}

/** Nothing can be kept or read now; later it may. */
export class StorageUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = "StorageUnavailable";
  }
}

const NAME = /^([0-9a-f]{64})-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The SHA-256 that a name begins with; throws on what is no name of ours, so that nothing else reaches a disk or a bucket. */
export function digestIn(name: string): string {
  const digest = NAME.exec(name)?.[1];
  if (digest === undefined) throw new TypeError(`${name} is no name in the storage`);
  return digest;
}
