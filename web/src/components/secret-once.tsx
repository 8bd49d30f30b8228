import { type ReactNode, useState } from "react";
import { CheckRow } from "./check-row.tsx";
import { CopyButton } from "./copy-button.tsx";
import { Dialog, DialogButtons } from "./dialog.tsx";

interface SecretOnceProps {
  /** "Your new key, shown once" */
  title: string;
  secret: string;
  /** What to know about it: "Stoa keeps a hash of it. If you lose it, create another." */
  children: ReactNode;
  /** How it is used, below it. */
  example?: ReactNode;
  /** "I saved the key in a safe place" */
  confirmation: string;
  onDone: () => void;
}

/** Shows a secret that the service never shows again. It closes only after the person says that it is saved. */
export function SecretOnce({ title, secret, children, example, confirmation, onDone }: SecretOnceProps) {
  const [isSaved, setSaved] = useState(false);
  return (
    <Dialog title={title}>
      <div className="stack soft">{children}</div>
      <code className="codeblock wrap" data-secret>
        {secret}
      </code>
      <CopyButton text={secret} className="btn wide" />
      {example}
      <CheckRow isChecked={isSaved} onChange={setSaved}>
        {confirmation}
      </CheckRow>
      <DialogButtons>
        <button type="button" className="btn primary" disabled={!isSaved} onClick={onDone}>
          Done
        </button>
      </DialogButtons>
    </Dialog>
  );
}
