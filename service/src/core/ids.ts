import { TypeID } from "typeid-js";
import { v7 } from "uuid";

/** Public ids have a prefix; inside the service an id is a plain uuid. */
export type IdPrefix =
  | "usr"
  | "prod"
  | "ver"
  | "eval"
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
  | "aud"
  | "ntf"
  | "bkp"
  | "lvf"
  | "job"
  | "mail"
  | "req";

let sequence = 0;

/** A UUIDv7. Ids of one process sort in the order of their creation. */
export function newUuid(at: Date): string {
  sequence = (sequence + 1) % 0xffff_ffff;
  return v7({ msecs: at.getTime(), seq: sequence });
}

/** The lower bound of UUIDv7s of that time; times before 1970 count as 1970. */
export const minUuidAt = (at: Date): string => {
  const msecs = Math.max(0, at.getTime()).toString(16).padStart(12, "0");
  return `${msecs.slice(0, 8)}-${msecs.slice(8)}-7000-8000-000000000000`;
};

/** A TypeID such as `prod_01kf5v8q3xe8hb1d6c1m2k3n4p`. */
export const toId = (prefix: IdPrefix, uuid: string): string => TypeID.fromUUID(prefix, uuid).toString();

/** null: not an id with this prefix. */
export function toUuid(prefix: IdPrefix, id: string): string | null {
  if (!id.startsWith(`${prefix}_`)) return null;
  try {
    return TypeID.fromString(id, prefix).toUUID();
  } catch {
    return null;
  }
}

/** For ids that this service created or checked before; throws for any other. */
export function requireUuid(prefix: IdPrefix, id: string): string {
  const uuid = toUuid(prefix, id);
  if (uuid === null) throw new Error(`Not an id of the kind ${prefix}`);
  return uuid;
}

/** Of ids separated by commas. Malformed ones are left out: no row has them. */
export const toUuids = (prefix: IdPrefix, ids: string): string[] =>
  ids
    .split(",")
    .map((id) => toUuid(prefix, id))
    .filter((id) => id !== null);
