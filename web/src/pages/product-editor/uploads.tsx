import type { Stoa } from "@stoa/sdk";
import { useRef, useState } from "react";
import { AlertIcon, CloseIcon } from "../../components/icons.tsx";
import { describeError } from "../../lib/errors.ts";
import { formatBytes, formatPercent } from "../../lib/format.ts";
import { stoaForUpload } from "./upload.ts";

interface Upload {
  id: number;
  name: string;
  share: number;
  error: string | null;
}

interface UploadOptions {
  mostBytes: number;
  send: (client: Stoa, file: File, options: { idempotencyKey: string }) => PromiseLike<unknown>;
  onStored: () => Promise<void>;
}

export interface Uploads {
  list: Upload[];
  add: (files: File[]) => void;
  close: (id: number) => void;
}

/** Files on their way, one after the other: each changes the product. */
export function useUploads({ mostBytes, send, onStored }: UploadOptions): Uploads {
  const [list, setList] = useState<Upload[]>([]);
  const queue = useRef(Promise.resolve());
  const nextId = useRef(1);
  const change = (id: number, part: Partial<Upload>) =>
    setList((old) => old.map((upload) => (upload.id === id ? { ...upload, ...part } : upload)));
  const close = (id: number) => setList((old) => old.filter((upload) => upload.id !== id));
  const upload = async (id: number, file: File) => {
    try {
      if (file.size > mostBytes)
        throw new Error(`The file has more than ${formatBytes(mostBytes)}. Choose a smaller one.`);
      const client = stoaForUpload((share) => change(id, { share }));
      await send(client, file, { idempotencyKey: crypto.randomUUID() });
      await onStored();
      close(id);
    } catch (error) {
      change(id, { error: describeError(error).text });
    }
  };
  const add = (files: File[]) => {
    for (const file of files) {
      const id = nextId.current++;
      setList((old) => [...old, { id, name: file.name, share: 0, error: null }]);
      queue.current = queue.current.then(() => upload(id, file));
    }
  };
  return { list, add, close };
}

export const UploadList = ({ uploads: { list, close } }: { uploads: Uploads }) => (
  <ul className="editor-uploads" aria-live="polite">
    {list.map(({ id, name, share, error }) => (
      <li key={id} className="row">
        <span className="cut" dir="auto">
          {name}
        </span>
        {error === null ? (
          <>
            <progress max={1} value={share} aria-label={`Upload of ${name}`} />
            <span className="sm soft num">
              {share < 1 ? formatPercent(Math.floor(share * 100) / 100) : "Checking"}
            </span>
          </>
        ) : (
          <>
            <span className="ferr grow" role="alert">
              <AlertIcon /> {error}
            </span>
            <button type="button" className="iconb" aria-label={`Close ${name}`} onClick={() => close(id)}>
              <CloseIcon />
            </button>
          </>
        )}
      </li>
    ))}
  </ul>
);
