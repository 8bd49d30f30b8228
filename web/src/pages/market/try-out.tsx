import type { ProductDetail } from "@stoa/sdk";
import { lazy, useState } from "react";
import { PlayIcon } from "../../components/icons.tsx";
import { Part } from "../../components/part.tsx";
import { SkeletonRows } from "../../components/skeleton.tsx";
import { formatCount, formatMoment } from "../../lib/format.ts";

const TryForm = lazy(() => import("./try-form.tsx"));

const SECTION = "try-out";

type Terms = NonNullable<ProductDetail["tryOut"]>;

interface TryOutProps {
  product: ProductDetail;
  tryOut: Terms;
  isOpen: boolean;
  onOpen: () => void;
}

/**
 * null: the person cannot try it. Buyers run the product instead, and its author sees what visitors see. An open form stays when the
 * seller turns tries off: it may hold an answer.
 */
export function useTryOut(product: ProductDetail): TryOutProps | null {
  const { id, access } = product;
  const [opened, setOpened] = useState<{ id: string; tryOut: Terms } | null>(null);
  const isOpen = opened?.id === id;
  const tryOut = product.tryOut ?? (isOpen ? opened.tryOut : null);
  const isBuyer = access.owned && access.reason !== "author";
  if (tryOut === null || isBuyer) return null;
  return { product, tryOut, isOpen, onOpen: () => setOpened({ id, tryOut }) };
}

/** The way to the form, beside the price. */
export function TryButton({ tryOut: { perVisitor }, isOpen, onOpen }: TryOutProps) {
  const open = () => (isOpen ? focusForm() : onOpen());
  return (
    <button type="button" className="btn l grow" onClick={open}>
      <PlayIcon /> Try {formatCount(perVisitor)} free {perVisitor === 1 ? "run" : "runs"}
    </button>
  );
}

/** A form that opens takes the focus itself. */
const focusForm = () =>
  document.getElementById(SECTION)?.querySelector<HTMLElement>("input, select, textarea, button")?.focus();

/** The product with the visitor's own input, before they buy it. */
export function TryOut({ product, tryOut, isOpen, onOpen }: TryOutProps) {
  const { perVisitor, leftToday, isSandbox } = tryOut;
  return (
    <section className="beam" id={SECTION} aria-labelledby="try-out-title">
      <div className="row between wrap">
        <h2 id="try-out-title">Try it</h2>
        <span className="soft sm">
          Free, {formatCount(perVisitor)} {perVisitor === 1 ? "run" : "runs"} a day
          {isSandbox && ", practice provider, not a model"}
        </span>
      </div>
      {isOpen ? (
        <Part fallback={<SkeletonRows count={4} />}>
          <TryForm product={product} tryOut={tryOut} />
        </Part>
      ) : leftToday === 0 ? (
        <p className="soft try-closed">
          All tries of today are used. The next ones start {formatMoment(nextDay(Date.now()))}.
        </p>
      ) : (
        <div className="stack try-closed">
          <p className="soft">
            {product.variables.length === 0 ? "See" : "Fill in your own input and see"} the answer. The seller
            pays for the model. You get the prompt itself when you buy.
          </p>
          <div>
            <button type="button" className="btn" onClick={onOpen}>
              <PlayIcon /> Try it
            </button>
          </div>
        </div>
      )}
    </section>
  );
}

const DAY_MS = 86_400_000;

/** Limits of a day are counted in UTC. */
const nextDay = (now: number): string => new Date((Math.floor(now / DAY_MS) + 1) * DAY_MS).toISOString();
