import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { showError, showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { editorProductQuery, lastTestRunQuery } from "../../queries/product-editor.ts";
import { checklistOf } from "./checklist.ts";
import {
  loadProduct,
  moveOrigin,
  patchProduct,
  readLocalChanges,
  removeLocalChanges,
  StaleDraft,
} from "./draft-backends.ts";
import { changedFields, FIELDS, toDraft, toUpdate, VERSIONED_FIELDS } from "./draft-fields.ts";
import { type Editor, useEditor } from "./editor-context.tsx";
import { type Release, ReleaseDialog } from "./release-dialog.tsx";

const NOT_OFFERED = new Set(["draft", "rejected", "unpublished"]);

/** Publishes the draft: the first time at once, later with the version that the changes make. */
export function PublishButton({ onMissing }: { onMissing: (missing: Editor["missing"]) => void }) {
  const { product, state, draft, store, goTo } = useEditor();
  const client = useQueryClient();
  const [isReleasing, release] = useState(false);
  const { data: run } = useQuery(lastTestRunQuery(product.id));
  const wasPublished = product.publishedAt !== null;
  const changes = wasPublished ? changedFields(toDraft(product), draft) : [];
  const isNewVersion = changes.some((field) => VERSIONED_FIELDS.includes(field));
  const isOnSale = product.status === "published";

  /** Leads to the first field that a rule of the checklist, or the service, names. */
  const showMissing = (named: Editor["missing"]) => {
    onMissing(named);
    const [field] = (Object.keys(named) as (keyof typeof FIELDS)[]).toSorted(
      (one, other) => Object.keys(FIELDS).indexOf(one) - Object.keys(FIELDS).indexOf(other),
    );
    if (field) goTo(field, FIELDS[field].tab);
  };
  const publish = useAction({
    run: async (input: Release | null, idempotencyKey) => {
      if (!(await storeChanges(input))) return null;
      if (!NOT_OFFERED.has(product.status)) return (await loadProduct(product.id)).product;
      return await stoa.products.publish(product.id, { idempotencyKey });
    },
    onSuccess: async (published) => {
      if (!published) return;
      release(false);
      await client.invalidateQueries({ queryKey: ["product", product.id] });
      void client.invalidateQueries({ queryKey: ["products"] });
      showToast(
        published.status === "pending_review"
          ? "Sent to the moderators. The product goes on sale when they approve it."
          : `Version ${published.version} is on sale`,
      );
    },
    onError: (error) => {
      const fields = store.refuse(error);
      if (fields.length > 0) {
        release(false);
        const { errors } = store.getState();
        showMissing(Object.fromEntries(fields.map((field) => [field, errors[field]])));
      } else if (!isReleasing) showError("The product was not published", error);
    },
  });

  /** Stores the changes. Returns whether all of them are, and no question is open. */
  const storeChanges = async (input: Release | null): Promise<boolean> => {
    await store.saveNow();
    if (store.isDirty) {
      showMissing(store.getState().errors);
      return false;
    }
    if (!wasPublished) return true;
    const origin = readLocalChanges(product.id)?.origin;
    if (!origin) return true;
    const { draft: present } = store.getState();
    const fields = changedFields(origin.draft, present);
    const update = { ...toUpdate(present, fields), ...(isNewVersion && input) };
    try {
      const stored =
        fields.length === 0
          ? await loadProduct(product.id)
          : await patchProduct(product.id, update, origin.tag);
      removeLocalChanges(product.id);
      store.reset({ draft: toDraft(stored.product), tag: "none" });
      client.setQueryData(editorProductQuery(product.id).queryKey, stored);
      return true;
    } catch (error) {
      if (!(error instanceof StaleDraft)) throw error;
      await mergePublished(origin.draft);
      return false;
    }
  };

  /** The product was changed elsewhere since these changes began. */
  const mergePublished = async (begun: ReturnType<typeof toDraft>) => {
    const loaded = await loadProduct(product.id);
    const theirs = { draft: toDraft(loaded.product), tag: loaded.etag };
    client.setQueryData(editorProductQuery(product.id).queryKey, loaded);
    const isMerged = store.compareWith(begun, theirs.draft);
    moveOrigin(product.id, theirs);
    release(false);
    if (isMerged) showToast("The product was changed elsewhere. Its changes are taken over: publish again.");
  };

  const start = () => {
    const items = checklistOf({ draft, errors: state.errors, hasRun: Boolean(run) });
    const open = items.filter(({ isDone, isRequired }) => isRequired && !isDone);
    const named = Object.fromEntries(
      open.map(({ field = "content", reason }) => [field, state.errors[field] ?? reason]),
    ) as Editor["missing"];
    if (open.length > 0 || Object.keys(state.errors).length > 0)
      return showMissing({ ...named, ...state.errors });
    onMissing({});
    if (isNewVersion) return release(true);
    publish.start(null);
  };

  if (product.status === "pending_review" || product.status === "suspended") return null;
  const isIdle = isOnSale && changes.length === 0;
  return (
    <>
      <button type="button" className="btn primary" disabled={publish.isPending || isIdle} onClick={start}>
        {isIdle
          ? "Published"
          : isNewVersion
            ? "Publish a version"
            : isOnSale
              ? "Publish changes"
              : `Publish ${product.version}`}
      </button>
      {isReleasing && (
        <ReleaseDialog
          product={product}
          error={publish.error}
          isPending={publish.isPending}
          onPublish={(input) => publish.start(input)}
          onClose={() => release(false)}
        />
      )}
    </>
  );
}
