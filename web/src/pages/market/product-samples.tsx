import type { ProductSample, SignedRunReceipt } from "@stoa/sdk";
import { useState } from "react";
import { Markdown } from "../../components/markdown.tsx";
import { Time } from "../../components/time.tsx";
import { saveFile } from "../../lib/save-file.ts";

/** What the product made of an input, one sample at a time. */
export function Samples({ samples }: { samples: ProductSample[] }) {
  const [shown, show] = useState(0);
  const sample = samples[shown] ?? samples[0];
  if (!sample) return null;
  return (
    <section className="beam">
      <div className="row between wrap">
        <h2>Sample output</h2>
        {samples.length > 1 && (
          <div className="seg s">
            {samples.map(({ model }, at) => (
              <button
                // biome-ignore lint/suspicious/noArrayIndexKey: samples have no ids, and two may be of one model
                key={at}
                type="button"
                aria-pressed={sample === samples[at]}
                onClick={() => show(at)}
              >
                {model}
              </button>
            ))}
          </div>
        )}
      </div>
      <div className="sample panel">
        <div className="stack">
          {Object.entries(sample.input).map(([name, value]) => (
            <div key={name}>
              <p className="label">
                Input <code>{name}</code>
              </p>
              <p className="preserve-lines soft" dir="auto">
                {toText(value)}
              </p>
            </div>
          ))}
        </div>
        <div>
          <p className="label">
            Output of {sample.model},{" "}
            {sample.executionId === undefined ? "typed by the seller" : "a real run"},{" "}
            <Time iso={sample.createdAt} isDay />
            {sample.receipt && (
              <ReceiptLink name={`${sample.executionId}-receipt.json`} {...sample.receipt} />
            )}
          </p>
          <div dir="auto">
            {typeof sample.output === "string" ? (
              <Markdown text={sample.output} />
            ) : (
              <pre className="codeblock wrap">{toText(sample.output)}</pre>
            )}
          </div>
        </div>
      </div>
    </section>
  );
}

const toText = (value: unknown): string =>
  typeof value === "string" ? value : JSON.stringify(value, null, 2);

/** Signed by the marketplace. With the salt, anybody can check that the run had this input and output. */
const ReceiptLink = ({ name, ...receipt }: { name: string } & SignedRunReceipt) => (
  <>
    ,{" "}
    <button
      type="button"
      className="link"
      onClick={() => saveFile(name, "application/json", JSON.stringify(receipt, null, 2))}
    >
      signed receipt
    </button>
  </>
);
