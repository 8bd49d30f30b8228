import type { ExecutionDetail } from "@stoa/sdk";
import { useEditor } from "./editor-context.tsx";

const MOST_SAMPLES = 5;

/** Shows a run to buyers. A run of what was not saved proves nothing about the product. */
export function SampleButton({ execution }: { execution: ExecutionDetail }) {
  const { draft, change, product } = useEditor();
  const isDraft = execution.productVersion.endsWith("-draft");
  if (isDraft || execution.productId !== product.id) return null;
  const isUsed = draft.samples.some(({ executionId }) => executionId === execution.id);
  return (
    <button
      type="button"
      className="btn s"
      disabled={isUsed || draft.samples.length >= MOST_SAMPLES}
      onClick={() => change({ samples: [...draft.samples, { executionId: execution.id }] })}
    >
      {isUsed ? "Is a sample" : "Use as sample"}
    </button>
  );
}
