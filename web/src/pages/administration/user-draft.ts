import type { AdminUserDetail, UpdateUser } from "@stoa/sdk";
import type { PLANS, ROLES } from "../../queries/administration.ts";

export type EditedUser = AdminUserDetail & { etag: string | null };

/** What the form edits. */
export interface UserDraft {
  role: string;
  plan: string;
  verified: boolean;
  /** "1000/3600, 50/60": requests per seconds; empty: the plan's. */
  quota: string;
  reason: string;
}

export type UserField = keyof UserDraft;

const quotaText = (quota: AdminUserDetail["quota"]): string =>
  (quota ?? []).map(({ requests, seconds }) => `${requests}/${seconds}`).join(", ");

const QUOTA = /^\d{1,9}\/\d{1,9}$/;

/** undefined: the text cannot be read. */
export function parseQuota(text: string): UpdateUser["quota"] | undefined {
  if (text.trim() === "") return null;
  const parts = text.split(",").map((part) => part.trim());
  if (!parts.every((part) => QUOTA.test(part))) return undefined;
  return parts.map((part) => {
    const [requests, seconds] = part.split("/").map(Number);
    return { requests: requests ?? 0, seconds: seconds ?? 0 };
  });
}

export const toDraft = (user: EditedUser): UserDraft => ({
  role: user.role,
  plan: user.plan,
  verified: user.verified,
  quota: quotaText(user.quota),
  reason: "",
});

/** The fields that differ; the service changes no other. */
export function changesOf(user: EditedUser, draft: UserDraft): UpdateUser {
  const quota = parseQuota(draft.quota);
  return {
    ...(draft.role !== user.role && { role: draft.role as (typeof ROLES)[number] }),
    ...(draft.plan !== user.plan && { plan: draft.plan as (typeof PLANS)[number] }),
    ...(draft.verified !== user.verified && { verified: draft.verified }),
    ...(quota !== undefined && draft.quota.trim() !== quotaText(user.quota) && { quota }),
  };
}

/** An unreadable quota is an edit, too, although no request can have it. */
export const isEdited = (user: EditedUser, draft: UserDraft): boolean =>
  parseQuota(draft.quota) === undefined || Object.keys(changesOf(user, draft)).length > 0;

/** The saved account, with what was typed after `sent`. */
export const draftAfterSave = (draft: UserDraft, sent: UserDraft, saved: EditedUser): UserDraft =>
  mergeDraft(toDraft(saved), draft, (field) => draft[field] !== sent[field]);

/** The account as another administrator changed it. A typed field that changed there, too, is lost: a save would overwrite it unseen. */
export function rebaseDraft(draft: UserDraft, user: EditedUser, changed: EditedUser): UserDraft {
  const [before, after] = [toDraft(user), toDraft(changed)];
  return mergeDraft(after, draft, (field) => before[field] === after[field]);
}

/** The typed fields that `rebaseDraft` replaces by another value. */
export function replacedFields(draft: UserDraft, user: EditedUser, changed: EditedUser): UserField[] {
  const [before, rebased] = [toDraft(user), rebaseDraft(draft, user, changed)];
  return fieldsOf(draft).filter((field) => draft[field] !== before[field] && draft[field] !== rebased[field]);
}

function mergeDraft(
  stored: UserDraft,
  draft: UserDraft,
  isFromDraft: (field: UserField) => boolean,
): UserDraft {
  const fields = fieldsOf(stored).filter(isFromDraft);
  return { ...stored, ...Object.fromEntries(fields.map((field) => [field, draft[field]])) };
}

const fieldsOf = (draft: UserDraft) => Object.keys(draft) as UserField[];
