import type { Adapter } from "oidc-provider";

/** oidc-provider's times are whole seconds. */
export const toSeconds = (time: Date): number => Math.floor(time.getTime() / 1000);
export const fromSeconds = (seconds: number): Date => new Date(seconds * 1000);

const nothing = async () => undefined;

export const unusedMethods: Pick<
  Adapter,
  "consume" | "destroy" | "findByUid" | "findByUserCode" | "revokeByGrantId"
> = {
  consume: nothing,
  destroy: nothing,
  findByUid: nothing,
  findByUserCode: nothing,
  revokeByGrantId: nothing,
};
