import { SecretOnce } from "../secret-once.tsx";

/** The secret of a webhook after its creation or rotation. */
export const WebhookSecret = ({
  secret,
  onDone,
  note,
}: {
  secret: string;
  onDone: () => void;
  note?: string;
}) => (
  <SecretOnce
    title="The signing secret, shown once"
    secret={secret}
    confirmation="I saved the secret"
    onDone={onDone}
  >
    <p>
      {note ?? "Your server verifies each delivery with it."} Stoa stores it encrypted and does not show it
      again. If you lose it, rotate it.
    </p>
  </SecretOnce>
);
