import { useMemo } from "react";
import { Tests } from "../tests/tests.tsx";
import type { OpenEditor } from "./use-workflow-editor.ts";
import { savesItself } from "./workflow-saver.ts";

/** The cases by which the workflow is measured, and its evaluations. */
export default function WorkflowTests({ editor }: { editor: OpenEditor }) {
  const { product, document, saver } = editor;
  const content = savesItself(product) ? document.text : product.content;
  const tested = useMemo(() => ({ ...product, content }), [product, content]);
  return (
    <section className="workflow-tests" aria-label="Tests">
      {!savesItself(product) && saver.isChanged && (
        <p className="strip warning">
          Tests and evaluations are those of version {product.version}, which is on sale. They leave out your
          changes until you publish them.
        </p>
      )}
      <Tests product={tested} />
    </section>
  );
}
