import type { Account } from "@stoa/sdk";
import { useRef } from "react";
import { stoa } from "../../api.ts";
import { FormError } from "../../components/form-error.tsx";
import { initialsOf } from "../../lib/format.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";

const MAX_BYTES = 5 * 1024 * 1024;
const TYPES = "image/png,image/jpeg,image/webp,image/gif,image/avif";

/** A file is `{}` in JSON: the rest tells it from another one. */
const pictureOf = (file: File) => ({
  file,
  name: file.name,
  size: file.size,
  lastModified: file.lastModified,
});
type Picture = ReturnType<typeof pictureOf>;

interface AvatarFieldProps {
  account: Account;
  onChange: () => Promise<void>;
}

/** The picture is stored as soon as it is chosen. */
export function AvatarField({ account: { name, avatar }, onChange }: AvatarFieldProps) {
  const picker = useRef<HTMLInputElement>(null);
  const upload = useAction({
    run: async ({ file, size }: Picture, idempotencyKey) => {
      if (size > MAX_BYTES) throw new Error("The file has more than 5 MB. Choose a smaller one.");
      return await stoa.account.avatar.create({ file }, { idempotencyKey });
    },
    onSuccess: async () => {
      await onChange();
      showToast("Picture saved");
    },
  });
  const remove = useAction({
    run: async () => await stoa.account.avatar.delete(),
    onSuccess: onChange,
  });
  const isPending = upload.isPending || remove.isPending;
  return (
    <>
      <div className="row wrap">
        <span className="avatar large" aria-hidden="true">
          {avatar ? <img src={avatar.url} alt="" width={72} height={72} /> : initialsOf(name)}
        </span>
        <input
          ref={picker}
          type="file"
          className="hidden"
          accept={TYPES}
          aria-label="Picture file"
          tabIndex={-1}
          onChange={({ target }) => {
            const file = target.files?.[0];
            // The same file can be chosen again.
            target.value = "";
            if (file && !isPending) upload.start(pictureOf(file));
          }}
        />
        <button type="button" className="btn" disabled={isPending} onClick={() => picker.current?.click()}>
          {upload.isPending ? "Uploading" : avatar ? "Replace" : "Upload"}
        </button>
        {avatar && (
          <button type="button" className="btn" disabled={isPending} onClick={() => remove.start()}>
            Remove
          </button>
        )}
        <span className="sm soft">PNG, JPEG, WebP, GIF or AVIF, at most 5 MB.</span>
      </div>
      <FormError error={upload.error ?? remove.error} title="The picture was not saved" />
    </>
  );
}
