import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useEffect, useState } from "react";
import { stoa } from "../../api.ts";
import { CopyButton } from "../../components/copy-button.tsx";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { fieldErrors } from "../../components/field.tsx";
import { FormError } from "../../components/form-error.tsx";
import { useAction } from "../../lib/use-action.ts";
import { BackupCodes } from "./backup-codes.tsx";
import { CodeField } from "./code-field.tsx";

const inGroups = (secret: string): string => secret.match(/.{1,4}/g)?.join(" ") ?? secret;

/** The QR code, a first code of the app, then the backup codes. Sign-in changes only after the code. */
export function SetUpTwoFactor({ onClose }: { onClose: () => void }) {
  const client = useQueryClient();
  const [code, setCode] = useState("");
  const { mutate: begin, ...setUp } = useMutation({ mutationFn: async () => await stoa.twoFactor.setUp() });
  // A second request would replace the secret that was scanned.
  useEffect(() => begin(), [begin]);
  const confirm = useAction({
    run: async (body: { code: string }, idempotencyKey) =>
      await stoa.twoFactor.confirm(body, { idempotencyKey }),
  });
  const done = async () => {
    await client.invalidateQueries();
    onClose();
  };
  if (confirm.data)
    return (
      <BackupCodes title="Two-factor authentication is on" codes={confirm.data.backupCodes} onDone={done}>
        All your other sessions ended.
      </BackupCodes>
    );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    confirm.start({ code });
  };
  return (
    <Dialog title="Turn on two-factor authentication" onClose={onClose}>
      <FormError error={setUp.error} title="The app could not be set up" />
      {setUp.data && (
        <form className="stack form" onSubmit={submit} noValidate>
          <p className="soft">
            Scan this with your authenticator app, such as Aegis, Google Authenticator or a password manager.
          </p>
          <img
            className="qr"
            src={setUp.data.qrCode}
            width={216}
            height={216}
            alt="QR code. The key below has the same secret as text."
          />
          <div className="field">
            <span className="m">Or type this key</span>
            <div className="row wrap">
              <code>{inGroups(setUp.data.secret)}</code>
              <CopyButton text={setUp.data.secret} />
              <a className="btn s" href={setUp.data.otpauthUri}>
                Open the app
              </a>
            </div>
          </div>
          <FormError error={confirm.error} title="The code was refused" />
          <CodeField
            code={code}
            hint="The six digits that the app shows now."
            error={fieldErrors(confirm.error)["code"]}
            onChange={setCode}
          />
          <DialogButtons>
            <button type="button" className="btn" onClick={onClose}>
              Not now
            </button>
            <button type="submit" className="btn primary" disabled={code.trim() === "" || confirm.isPending}>
              Turn on
            </button>
          </DialogButtons>
        </form>
      )}
      {!setUp.data && (
        <>
          {setUp.isPending && <div className="skeleton qr" />}
          <DialogButtons>
            <button type="button" className="btn" onClick={onClose}>
              Not now
            </button>
          </DialogButtons>
        </>
      )}
    </Dialog>
  );
}
