import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatExactTime } from "../../lib/format.ts";
import { useAction } from "../../lib/use-action.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { FormError } from "../form-error.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { WebhookSecret } from "./webhook-secret.tsx";

const OVERLAPS = [
  [0, "Not at all", "Deliveries fail until your server has the new secret."],
  [1, "1 hour", "Both secrets sign meanwhile."],
  [24, "24 hours", "Both secrets sign meanwhile."],
  [168, "7 days", "Both secrets sign meanwhile."],
] as const;

/** Replaces the secret of an endpoint; the old one signs for some time beside it. */
export function RotateDialog({ webhookId, onClose }: { webhookId: string; onClose: () => void }) {
  const [overlapHours, setOverlap] = useState<number>(24);
  const rotate = useAction({
    run: async (input: { overlapHours: number }, idempotencyKey) =>
      await stoa.webhooks.rotateSecret(webhookId, input, { idempotencyKey }),
  });
  if (rotate.data)
    return (
      <WebhookSecret
        secret={rotate.data.secret}
        note={
          overlapHours === 0
            ? "The new secret signs all deliveries from now on."
            : `The old secret also signs until ${formatExactTime(rotate.data.oldSecretUntil)}.`
        }
        onDone={onClose}
      />
    );
  return (
    <Dialog title="Rotate the signing secret" onClose={onClose}>
      <FormError error={rotate.error} title="The secret was not rotated" />
      <fieldset className="plain stack">
        <legend className="m">How long the old secret also signs</legend>
        {OVERLAPS.map(([hours, label, consequence]) => (
          <label className="row" key={hours}>
            <input
              type="radio"
              className="radio"
              name="overlap"
              checked={overlapHours === hours}
              onChange={() => setOverlap(hours)}
            />
            <span>
              <span className="m">{label}.</span> <span className="soft">{consequence}</span>
            </span>
          </label>
        ))}
      </fieldset>
      <DialogButtons>
        <ShowAsCode
          curl={curlOf("POST", `/webhooks/${webhookId}/rotate-secret`, { overlapHours })}
          sdk={`const { secret } = await stoa.webhooks.rotateSecret("${webhookId}", { overlapHours: ${overlapHours} });`}
        />
        <button type="button" className="btn" onClick={onClose}>
          Keep the old one
        </button>
        <button
          type="button"
          className="btn primary"
          disabled={rotate.isPending}
          onClick={() => rotate.start({ overlapHours })}
        >
          Rotate secret
        </button>
      </DialogButtons>
    </Dialog>
  );
}
