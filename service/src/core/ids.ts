import { TypeID } from "typeid-js";
import { v7 } from "uuid";

/** Prefix of every id that leaves the service; inside, the same id is a uuid. */
export type IdPrefix =
  | "usr"
  | "prod"
  | "ver"
  | "file"
  | "img"
  | "rev"
  | "ord"
  | "pay"
  | "refund"
  | "payout"
  | "disc"
  | "key"
  | "pkey"
  | "evt"
  | "whk"
  | "dlv"
  | "rcv"
  | "exec"
  | "ses"
  | "grant"
  | "aud";

let sequence = 0;

/** A UUIDv7 of the given time. Ids of one process sort in the order of their creation. */
export function newUuid(at: Date): string {
  sequence = (sequence + 1) % 0xffff_ffff;
  return v7({ msecs: at.getTime(), seq: sequence });
}

/** The lower bound of the UUIDv7s of that time. There are none before 1970. */
export const minUuidAt = (at: Date): string => {
  const msecs = Math.max(0, at.getTime()).toString(16).padStart(12, "0");
  return `${msecs.slice(0, 8)}-${msecs.slice(8)}-7000-8000-000000000000`;
};

/** The public form of an id: a TypeID, such as `prod_01kf5v8q3xe8hb1d6c1m2k3n4p`. */
export const toId = (prefix: IdPrefix, uuid: string): string => TypeID.fromUUID(prefix, uuid).toString();

/** The uuid inside an id of that kind; null when the text is not such an id. */
export function toUuid(prefix: IdPrefix, id: string): string | null {
  if (!id.startsWith(`${prefix}_`)) return null;
  try {
    return TypeID.fromString(id, prefix).toUUID();
  } catch {
    return null;
  }
}

/** The UUID of an id that this service wrote or checked before. Throws for any other. */
export function requireUuid(prefix: IdPrefix, id: string): string {
  const uuid = toUuid(prefix, id);
  if (uuid === null) throw new Error(`Not an id of the kind ${prefix}`);
  return uuid;
}
