import { stoa } from "../../api.ts";
import { saveResponse } from "../../lib/save-file.ts";
import { refusedParts, TEST_FORMATS, type TestFormat } from "../../lib/test-files.ts";
import { useAction } from "../../lib/use-action.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { FormError } from "../form-error.tsx";
import { DownloadIcon } from "../icons.tsx";
import { RefusedParts } from "./test-file-parts.tsx";

/** The stored tests as a file. */
export default function ExportTestsDialog({
  productId,
  onClose,
}: {
  productId: string;
  onClose: () => void;
}) {
  const save = useAction({
    run: async (format: TestFormat) =>
      await saveResponse(await stoa.products.testSet.export(productId, { format })),
    onSuccess: onClose,
  });
  const format = TEST_FORMATS.find(({ id }) => id === save.variables);
  const refused = refusedParts(save.error);
  return (
    <Dialog title="Export tests" onClose={onClose}>
      <p className="soft">The import reads each of these files, also after you changed it.</p>
      <ul className="test-formats">
        {TEST_FORMATS.map(({ id, name, holds }) => (
          <li key={id} className="row between wrap">
            <span>
              <b>{name}</b> <span className="sm soft">{holds}</span>
            </span>
            <button type="button" className="btn s" disabled={save.isPending} onClick={() => save.start(id)}>
              <DownloadIcon /> Save<span className="hidden"> as {name}</span>
            </button>
          </li>
        ))}
      </ul>
      {refused ? (
        <RefusedParts title={`${format?.name} cannot hold these tests:`} parts={refused} />
      ) : (
        <FormError error={save.error} title="The tests were not exported" />
      )}
      <DialogButtons>
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </DialogButtons>
    </Dialog>
  );
}
