import type { ProductDetail } from "@stoa/sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { Field, fieldErrors } from "../field.tsx";
import { FormError } from "../form-error.tsx";
import { RegressionChoice } from "../regression-choice.tsx";
import { useEditor } from "./editor-context.ts";
import { WorkflowDiffView } from "./workflow-diff.tsx";
import { savesItself, type WorkflowSaver } from "./workflow-saver.ts";

interface PublishDialogProps {
  saver: WorkflowSaver;
  onClose: () => void;
  onPublished: (product: ProductDetail) => void;
}

/** Offers what the editor shows: the first time as the product, later as its next version. */
export default function PublishDialog({ saver, onClose, onPublished }: PublishDialogProps) {
  const { product, document } = useEditor();
  const client = useQueryClient();
  const isFirst = savesItself(product);
  const [changelog, setChangelog] = useState("");
  const [version, setVersion] = useState("");
  const [isWorse, setWorse] = useState(false);
  const { start, isPending, error } = useAction({
    run: async () => {
      const change = {
        content: document.text,
        ...(!isFirst && changelog !== "" && { changelog }),
        ...(!isFirst && version !== "" && { version }),
        ...(!isFirst && isWorse && { acknowledgesRegression: true }),
      };
      let present = saver.isChanged ? await saver.send(change) : product;
      if (present.status !== "published") present = await stoa.products.publish(product.id);
      return present;
    },
    onSuccess: (published) => {
      void client.invalidateQueries({ queryKey: ["product", product.id] });
      void client.invalidateQueries({ queryKey: ["products"] });
      showToast(
        published.status === "pending_review"
          ? "Waits for a moderator"
          : `Version ${published.version} is on sale`,
      );
      onPublished(published);
      onClose();
    },
  });
  const errors = fieldErrors(error);
  return (
    <Dialog title={isFirst ? "Publish the workflow" : "Publish a new version"} onClose={onClose}>
      <form
        className="stack form"
        onSubmit={(event) => {
          event.preventDefault();
          start();
        }}
      >
        <FormError error={error} title="It was not published" />
        {isFirst ? (
          <p>
            Buyers find it as soon as it is published. Title, price and images are on{" "}
            <a href={`/studio/products/${product.id}`} className="link">
              the product's page
            </a>
            .
          </p>
        ) : (
          <>
            <h3 className="h3">Changes since version {product.version}</h3>
            <WorkflowDiffView before={saver.base.text} after={document.text} />
            <Field
              label="What is new"
              hint="Buyers read it in the list of versions."
              error={errors["changelog"]}
            >
              {(control) => (
                <textarea
                  {...control}
                  className="input area"
                  rows={3}
                  value={changelog}
                  onChange={({ target }) => setChangelog(target.value)}
                />
              )}
            </Field>
            <RegressionChoice
              error={errors["acknowledgesRegression"]}
              isChecked={isWorse}
              onChange={setWorse}
            />
            <Field
              label="Version"
              hint={`Empty: the next minor one after ${product.version}.`}
              error={errors["version"]}
            >
              {(control) => (
                <input
                  {...control}
                  className="input"
                  autoComplete="off"
                  value={version}
                  onChange={({ target }) => setVersion(target.value.trim())}
                />
              )}
            </Field>
          </>
        )}
        <DialogButtons>
          <button type="button" className="btn" onClick={onClose}>
            Close
          </button>
          <button type="submit" className="btn primary" disabled={isPending}>
            Publish
          </button>
        </DialogButtons>
      </form>
    </Dialog>
  );
}
