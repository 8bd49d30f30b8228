import "./tests.css";
import type { ProductDetail, TestCaseInput, TestSet } from "@stoa/sdk";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { stoa } from "../../api.ts";
import { curlOf } from "../../lib/curl.ts";
import { formatCount } from "../../lib/format.ts";
import { showToast } from "../../lib/toasts.ts";
import { useAction } from "../../lib/use-action.ts";
import { testSetQuery } from "../../queries/evaluations.ts";
import { EmptyState } from "../empty-state.tsx";
import { FormError } from "../form-error.tsx";
import { PlusIcon } from "../icons.tsx";
import { ErrorStrip } from "../page-error.tsx";
import { ShowAsCode } from "../show-as-code.tsx";
import { SkeletonRows } from "../skeleton.tsx";
import { Evaluations } from "./evaluations.tsx";
import { TestCaseDialog } from "./test-case-dialog.tsx";
import { countAssertions, NEW_CASE } from "./test-cases.ts";
import { TestFileButtons } from "./test-file-buttons.tsx";
import { TestedProductProvider, useTestedProduct } from "./tested-product.ts";

/** The cases by which the product is measured, and the results. */
export function Tests({ product }: { product: ProductDetail }) {
  const { data: testSet, error } = useQuery(testSetQuery(product.id));
  return (
    <TestedProductProvider value={product}>
      <div className="stack form">
        {error && <ErrorStrip error={error} />}
        {!testSet && !error && <SkeletonRows count={3} />}
        {testSet && (
          <>
            <TestSetSection testSet={testSet} />
            <Evaluations testSet={testSet} />
          </>
        )}
      </div>
    </TestedProductProvider>
  );
}

/** The author gets every case whole. */
const toCases = ({ cases }: TestSet): TestCaseInput[] =>
  cases.map(({ input, assert, ...rest }) => ({ ...rest, input: input ?? {}, assert: assert ?? [] }));

class ChangedElsewhere extends Error {}

function TestSetSection({ testSet }: { testSet: TestSet }) {
  const product = useTestedProduct();
  const client = useQueryClient();
  const [edited, setEdited] = useState<number | "new" | null>(null);
  const cases = toCases(testSet);
  const save = useAction({
    run: async (next: TestCaseInput[]) => {
      const stored = await stoa.products.testSet.get(product.id);
      if (stored.hash !== testSet.hash) {
        client.setQueryData(testSetQuery(product.id).queryKey, stored);
        throw new ChangedElsewhere("The tests were changed elsewhere. They are shown now; save again.");
      }
      return await stoa.products.testSet.replace(product.id, { cases: next });
    },
    onSuccess: (stored) => {
      client.setQueryData(testSetQuery(product.id).queryKey, stored);
      setEdited(null);
      showToast("Tests saved");
    },
  });
  const open = (at: number | "new") => {
    save.reset();
    setEdited(at);
  };
  const edit = (changed: TestCaseInput) =>
    save.start(
      edited === "new"
        ? [...cases, changed]
        : cases.map((testCase, at) => (at === edited ? changed : testCase)),
    );
  return (
    <section className="beam thin stack">
      <div className="row between wrap">
        <h2 className="h3">Tests</h2>
        <div className="row wrap">
          <TestFileButtons productId={product.id} cases={cases} />
          <button type="button" className="btn s" onClick={() => open("new")}>
            <PlusIcon /> Add a test
          </button>
        </div>
      </div>
      <p className="soft">
        Each test runs the product with fixed inputs and checks its output. Buyers see how many pass, and the
        tests that are not hidden.
      </p>
      {edited === null && <FormError error={save.error} title="The tests were not saved" />}
      {cases.length === 0 ? (
        <EmptyState title="No tests yet">
          Add one for each thing that the product promises. Ten or more make a rate that says something.
        </EmptyState>
      ) : (
        <CaseTable
          cases={cases}
          isPending={save.isPending}
          onEdit={open}
          onRemove={(removed) => save.start(cases.filter((_, at) => at !== removed))}
        />
      )}
      {testSet.hash && (
        <p className="xs soft">
          Hash <code>{testSet.hash.slice(0, 16)}…</code>
        </p>
      )}
      <div className="flush">
        <ShowAsCode
          curl={curlOf("GET", `/products/${product.id}/test-set`)}
          sdk={`const { cases } = await stoa.products.testSet.get("${product.id}");`}
        />
      </div>
      {edited !== null && (
        <TestCaseDialog
          product={product}
          testCase={(edited === "new" ? undefined : cases[edited]) ?? NEW_CASE}
          isNew={edited === "new"}
          error={save.error}
          isPending={save.isPending}
          position={edited === "new" ? cases.length : edited}
          onSave={edit}
          onClose={() => setEdited(null)}
        />
      )}
    </section>
  );
}

interface CaseTableProps {
  cases: TestCaseInput[];
  isPending: boolean;
  onEdit: (at: number) => void;
  onRemove: (at: number) => void;
}

const CaseTable = ({ cases, isPending, onEdit, onRemove }: CaseTableProps) => (
  <div className="test-scroll">
    <table>
      <thead>
        <tr>
          <th>Test</th>
          <th>Checks</th>
          <th>Buyers see</th>
          <th>
            <span className="hidden">Change</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {cases.map((testCase, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: tests have no ids, and two may have one title
          <tr key={at}>
            <td dir="auto">{testCase.title}</td>
            <td className="num">{formatCount(countAssertions(testCase))}</td>
            <td>{testCase.isHidden ? "The title" : "Everything"}</td>
            <td className="r nowrap test-actions">
              <button type="button" className="btn quiet s" onClick={() => onEdit(at)}>
                Edit<span className="hidden"> {testCase.title}</span>
              </button>
              <button type="button" className="btn quiet s" disabled={isPending} onClick={() => onRemove(at)}>
                Remove<span className="hidden"> {testCase.title}</span>
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);
