import type { ProductFile, ProductImage } from "@stoa/sdk";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { DropZone } from "../../components/drop-zone.tsx";
import { ArrowUpIcon, FileIcon, TrashIcon } from "../../components/icons.tsx";
import { formatBytes } from "../../lib/format.ts";
import { showError } from "../../lib/toasts.ts";
import { useEditor } from "./editor-context.tsx";
import { UploadList, useUploads } from "./uploads.tsx";

const MOST_IMAGES = 10;
const IMAGE_TYPES = "image/png,image/jpeg,image/webp,image/gif,image/avif";
const IMAGE_BYTES = 10 * 1024 * 1024;
const FILE_BYTES = 50 * 1024 * 1024;

/** The gallery and the files for buyers. Both are stored at once, not with the draft. */
export default function MediaTab() {
  return (
    <div className="stack form editor-form">
      <Gallery />
      <Files />
    </div>
  );
}

/** Runs a change of an image or file, then reads the product again. */
function useChange() {
  const { reload } = useEditor();
  const [isBusy, setBusy] = useState(false);
  const run = async (what: string, change: () => PromiseLike<unknown>) => {
    if (isBusy) return;
    setBusy(true);
    try {
      await change();
      await reload();
    } catch (error) {
      showError(what, error);
    } finally {
      setBusy(false);
    }
  };
  return { isBusy, run };
}

function Gallery() {
  const { product, reload } = useEditor();
  const uploads = useUploads({
    mostBytes: IMAGE_BYTES,
    send: (client, file, options) => client.images.create(product.id, { file }, options),
    onStored: reload,
  });
  const { isBusy, run } = useChange();
  const { gallery } = product;
  const move = (image: ProductImage, position: number) =>
    void run("The image was not moved", () => stoa.images.update(product.id, image.id, { position }));
  return (
    <section className="beam thin stack" data-field="images">
      <h2 className="h3">Images</h2>
      <p className="sm soft">
        The first is the cover. Without one, the product keeps its generated cover. {gallery.length} of{" "}
        {MOST_IMAGES}.
      </p>
      <ol className="editor-images">
        {gallery.map((image, at) => (
          <li key={image.id} className="panel">
            <img src={image.sizes[0]?.url ?? image.url} alt={image.alt} width={320} height={200} />
            <AltField image={image} at={at} />
            <div className="row">
              <span className="sm soft grow">{at === 0 ? "Cover" : `Image ${at + 1}`}</span>
              <button
                type="button"
                className="iconb"
                aria-label={`Move image ${at + 1} forward`}
                disabled={at === 0 || isBusy}
                onClick={() => move(image, at)}
              >
                <ArrowUpIcon />
              </button>
              <button
                type="button"
                className="iconb"
                aria-label={`Remove image ${at + 1}`}
                disabled={isBusy}
                onClick={() =>
                  void run("The image was not removed", () => stoa.images.delete(product.id, image.id))
                }
              >
                <TrashIcon />
              </button>
            </div>
          </li>
        ))}
      </ol>
      <UploadList uploads={uploads} />
      {gallery.length < MOST_IMAGES && (
        <DropZone
          label="Image files"
          accept={IMAGE_TYPES}
          hint="PNG, JPEG, WebP, GIF or AVIF, at most 10 MB."
          onFiles={uploads.add}
        />
      )}
    </section>
  );
}

/** Stored when the focus leaves it. */
function AltField({ image, at }: { image: ProductImage; at: number }) {
  const { product, reload } = useEditor();
  const [alt, setAlt] = useState(image.alt);
  const store = async () => {
    if (alt === image.alt) return;
    try {
      await stoa.images.update(product.id, image.id, { alt });
      await reload();
    } catch (error) {
      showError("The description was not stored", error);
    }
  };
  return (
    <input
      className="input"
      aria-label={`Description of image ${at + 1}`}
      placeholder="Describe it for those who cannot see it"
      maxLength={300}
      dir="auto"
      data-own-undo
      value={alt}
      onChange={({ target }) => setAlt(target.value)}
      onBlur={() => void store()}
    />
  );
}

function Files() {
  const { product, reload } = useEditor();
  const [removed, remove] = useState<ProductFile | null>(null);
  const { isBusy, run } = useChange();
  const wasPublished = product.publishedAt !== null;
  const uploads = useUploads({
    mostBytes: FILE_BYTES,
    send: (client, file, options) => client.files.create(product.id, { file }, options),
    onStored: reload,
  });
  const files = product.files ?? [];
  const takeAway = (file: ProductFile) =>
    void run("The file was not removed", () => stoa.files.delete(product.id, file.id)).then(() =>
      remove(null),
    );
  return (
    <section className="beam thin stack" data-field="files">
      <h2 className="h3">Files for buyers</h2>
      {wasPublished && (
        <p className="strip warning">
          The product was on sale: each file that you add or remove makes a new version at once.
        </p>
      )}
      {files.length > 0 && (
        <ul className="editor-files">
          {files.map((file) => (
            <li key={file.id} className="row">
              <FileIcon className="soft" />
              <a href={file.url} className="link cut" dir="auto">
                {file.name}
              </a>
              <span className="sm soft num nowrap grow">{formatBytes(file.size)}</span>
              <button
                type="button"
                className="iconb"
                aria-label={`Remove ${file.name}`}
                disabled={isBusy}
                onClick={() => (wasPublished ? remove(file) : takeAway(file))}
              >
                <TrashIcon />
              </button>
            </li>
          ))}
        </ul>
      )}
      <UploadList uploads={uploads} />
      <DropZone
        label="Files for buyers"
        hint="Text, PDF, office, ZIP or image, at most 50 MB. A file of the same name is replaced."
        onFiles={uploads.add}
      />
      {removed && (
        <ConfirmDialog
          title={`Remove ${removed.name}?`}
          action="Remove it"
          keep="Keep it"
          isPending={isBusy}
          onConfirm={() => takeAway(removed)}
          onClose={() => remove(null)}
        >
          <p className="soft">
            A new version without it is on sale at once. Buyers of the older major versions keep it.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}
