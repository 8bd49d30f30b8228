import "./editor.css";
import { useQueryClient, useSuspenseQuery } from "@tanstack/react-query";
import { getRouteApi, useBlocker } from "@tanstack/react-router";
import { useCallback, useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { NotFound } from "../../components/page-error.tsx";
import { showToast } from "../../lib/toasts.ts";
import { useTitle } from "../../lib/use-title.ts";
import { type EditorTab, editorProductQuery } from "../../queries/product-editor.ts";
import { ConflictDialog } from "./conflict-dialog.tsx";
import {
  type LoadedProduct,
  localBackend,
  onLocalChanges,
  readLocalChanges,
  serverBackend,
} from "./draft-backends.ts";
import { type DraftField, FIELDS, toDraft } from "./draft-fields.ts";
import { DraftMirror } from "./draft-mirror.ts";
import { DraftStore } from "./draft-store.ts";
import { EditorBar } from "./editor-bar.tsx";
import { EditorProvider, type Editor as EditorValue, useEditorSearch } from "./editor-context.tsx";
import { EditorTabs, TabContent } from "./editor-tabs.tsx";
import { PublishBar } from "./publish-bar.tsx";
import { useEditorKeys } from "./use-editor-keys.ts";

const route = getRouteApi("/studio/products/$productId");

export default function ProductEditor() {
  const { productId } = route.useParams();
  const { data } = useSuspenseQuery({ ...editorProductQuery(productId), refetchOnWindowFocus: false });
  const { product } = data;
  if (product.access.reason !== "author" || product.type === "WORKFLOW") return <NotFound />;
  // With the first publication, changes are kept in another place.
  return <Editor key={`${product.id} ${product.publishedAt !== null}`} loaded={data} />;
}

function Editor({ loaded }: { loaded: LoadedProduct }) {
  const { product } = loaded;
  const store = useDraftStore(loaded);
  const state = useSyncExternalStore(store.subscribe, store.getState);
  const [missing, setMissing] = useState<EditorValue["missing"]>({});
  const client = useQueryClient();
  const goTo = useGoTo();
  useTitle(state.draft.title || "Product");
  useEditorKeys(store);
  const editor = useMemo(
    (): EditorValue => ({
      ...{ product, store, state, missing, goTo },
      reload: async () => {
        await client.invalidateQueries({ queryKey: editorProductQuery(product.id).queryKey });
        await store.refresh();
      },
    }),
    [product, store, state, missing, goTo, client],
  );
  return (
    <EditorProvider value={editor}>
      <main className="pe" id="content">
        <EditorBar onMissing={setMissing} />
        <EditorTabs />
        <TabContent />
        <PublishBar />
        {state.conflict && <ConflictDialog conflict={state.conflict} />}
        <LeaveGuard store={store} />
      </main>
    </EditorProvider>
  );
}

function useDraftStore(loaded: LoadedProduct): DraftStore {
  const client = useQueryClient();
  const [store] = useState(() => {
    const { id, publishedAt } = loaded.product;
    const { queryKey } = editorProductQuery(id);
    const onTaken = (fields: DraftField[]) =>
      showToast(`Changed elsewhere and taken over: ${fields.map((field) => FIELDS[field].label).join(", ")}`);
    const published = { draft: toDraft(loaded.product), tag: loaded.etag };
    if (publishedAt === null) {
      const backend = serverBackend(id, (changed) => client.setQueryData(queryKey, changed));
      return new DraftStore(backend, published, { onTaken });
    }
    const origin = () => {
      const present = client.getQueryData(queryKey) ?? loaded;
      return { draft: toDraft(present.product), tag: present.etag };
    };
    return new DraftStore(localBackend(id, origin), readLocalChanges(id) ?? { ...published, tag: "none" }, {
      onTaken,
    });
  });
  const { id, publishedAt } = loaded.product;
  useEffect(() => {
    if (publishedAt === null) return;
    const reload = () => client.fetchQuery({ ...editorProductQuery(id), staleTime: 0 });
    const mirror = new DraftMirror(id, store, async () => void (await reload()));
    const onFocus = () => document.visibilityState === "visible" && void mirror.sync();
    void mirror.sync();
    document.addEventListener("visibilitychange", onFocus);
    return () => {
      document.removeEventListener("visibilitychange", onFocus);
      mirror.close();
    };
  }, [store, client, id, publishedAt]);
  useEffect(() => {
    const refresh = () => void store.refresh().catch(() => undefined);
    const onFocus = () => document.visibilityState === "visible" && refresh();
    const stop = onLocalChanges(loaded.product.id, refresh);
    document.addEventListener("visibilitychange", onFocus);
    return () => {
      stop();
      document.removeEventListener("visibilitychange", onFocus);
      store.dispose();
    };
  }, [store, loaded.product.id]);
  return store;
}

/** The control may stand in a part that loads only now. */
const FIND_MS = 2_000;

function useGoTo(): EditorValue["goTo"] {
  const [, setSearch] = useEditorSearch();
  const open = useEffectEvent(setSearch);
  return useCallback(
    (target: string, tab: EditorTab) => {
      const until = performance.now() + FIND_MS;
      const focus = () => {
        const field = document.querySelector(`[data-field="${CSS.escape(target)}"]`);
        const control = field?.querySelector<HTMLElement>(
          "input:not([tabindex='-1']), select, textarea, .cm-content, button",
        );
        if (control) return control.focus();
        if (performance.now() < until) requestAnimationFrame(focus);
      };
      void open({ tab: tab === "prompt" ? undefined : tab, pane: undefined }).then(focus);
    },
    [open],
  );
}

/** A function that stays the same, and does what the newest render says. */
function useEffectEvent<Arguments extends unknown[], Result>(
  action: (...given: Arguments) => Result,
): (...given: Arguments) => Result {
  const [holder] = useState({ action });
  holder.action = action;
  return useCallback((...given: Arguments) => holder.action(...given), [holder]);
}

/** Leaving stores what is not stored yet, and asks only if that fails. */
function LeaveGuard({ store }: { store: DraftStore }) {
  const { productId } = route.useParams();
  const blocker = useBlocker({
    shouldBlockFn: async ({ current, next }) => {
      if (next.pathname === current.pathname || !store.isDirty) return false;
      await store.saveNow();
      return store.isDirty;
    },
    enableBeforeUnload: () => store.isDirty,
    withResolver: true,
  });
  if (blocker.status !== "blocked") return null;
  return (
    <ConfirmDialog
      title="Leave without saving?"
      action="Leave"
      keep="Stay here"
      onConfirm={blocker.proceed}
      onClose={blocker.reset}
    >
      <p className="soft">Some of your changes to {productId} are not saved.</p>
    </ConfirmDialog>
  );
}
