import { type ReactNode, useState } from "react";
import { CopyButton } from "../../components/copy-button.tsx";
import { Dialog, DialogButtons } from "../../components/dialog.tsx";
import { DownloadIcon } from "../../components/icons.tsx";
import { saveFile } from "../../lib/save-file.ts";

interface BackupCodesProps {
  title: string;
  codes: string[];
  children?: ReactNode;
  onDone: () => void | Promise<void>;
}

/** The codes, which the service shows only now. */
export function BackupCodes({ title, codes, children, onDone }: BackupCodesProps) {
  const [isSaved, setSaved] = useState(false);
  const text = `${codes.join("\n")}\n`;
  return (
    <Dialog title={title}>
      <p className="soft">
        Without your phone, you sign in with one of these backup codes. Each works once, and they are shown
        only now. {children}
      </p>
      <ul className="codeblock codes" data-secret>
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <div className="row wrap">
        <CopyButton text={text} className="btn" />
        <button
          type="button"
          className="btn"
          onClick={() => saveFile("stoa-backup-codes.txt", "text/plain", text)}
        >
          <DownloadIcon /> Download
        </button>
      </div>
      <label className="choice">
        <input
          type="checkbox"
          className="check"
          checked={isSaved}
          onChange={({ target }) => setSaved(target.checked)}
        />
        <span>I saved them where I find them without my phone</span>
      </label>
      <DialogButtons>
        <button type="button" className="btn primary" disabled={!isSaved} onClick={() => void onDone()}>
          Done
        </button>
      </DialogButtons>
    </Dialog>
  );
}
