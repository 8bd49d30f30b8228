import type { ApiKey, RotatedApiKey } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { stoa } from "../../api.ts";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { FormError } from "../../components/form-error.tsx";
import { AlertIcon } from "../../components/icons.tsx";
import { Time } from "../../components/time.tsx";
import { formatMoment } from "../../lib/format.ts";
import { useAction } from "../../lib/use-action.ts";
import { NewKey } from "./new-key.tsx";

const HOUR_MS = 3_600_000;
const GRACE = [
  { hours: 0, label: "Ends now" },
  { hours: 1, label: "1 hour" },
  { hours: 24, label: "24 hours" },
  { hours: 168, label: "7 days" },
];

export function RotateKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const { id, name, lastUsedAt } = apiKey;
  const client = useQueryClient();
  const [graceHours, setGraceHours] = useState(24);
  const [rotated, setRotated] = useState<RotatedApiKey | null>(null);
  const rotate = useAction({
    run: async (body: { graceHours: number }, idempotencyKey) =>
      await stoa.apiKeys.rotate(id, body, { idempotencyKey }),
    onSuccess: setRotated,
    onSettled: () => client.invalidateQueries({ queryKey: ["api-keys"] }),
  });
  if (rotated)
    return (
      <NewKey title="The new key is active" apiKey={rotated} onDone={onClose}>
        <p>
          {graceHours === 0
            ? "The old one ended."
            : `The old one works until ${formatMoment(rotated.replaced.expiresAt)}.`}
        </p>
      </NewKey>
    );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rotate.start({ graceHours });
  };
  return (
    <Dialog title={`Rotate “${name}”`} onClose={onClose}>
      <form className="stack form" onSubmit={submit}>
        <p className="soft">You get a new key now. How long does the old one work?</p>
        <FormError error={rotate.error} title="The key was not rotated" />
        <fieldset className="plain picks">
          <legend className="hidden">How long the old key works</legend>
          {GRACE.map(({ hours, label }) => (
            <label key={hours} className="choice">
              <input
                type="radio"
                name="grace"
                className="radio"
                checked={graceHours === hours}
                onChange={() => setGraceHours(hours)}
              />
              <span>
                <span className="m">{label}</span>{" "}
                <span className="soft sm">
                  {hours === 0
                    ? "if it leaked"
                    : `until ${formatMoment(new Date(Date.now() + hours * HOUR_MS).toISOString())}`}
                </span>
              </span>
            </label>
          ))}
        </fieldset>
        {lastUsedAt !== null && (
          <div className="strip warning sm">
            <AlertIcon />
            <span>
              It was last used <Time iso={lastUsedAt} />. Each program that uses it needs the new key.
            </span>
          </div>
        )}
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Keep it
          </button>
          <button type="submit" className="btn primary" disabled={rotate.isPending}>
            Rotate key
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
