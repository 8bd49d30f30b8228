import { createHash } from "node:crypto";
import type { ProductDetail } from "@stoa/contract";
import { type FieldProblem, formatPath } from "../../core/errors.ts";
import { toUuid } from "../../core/ids.ts";
import { toDecimal } from "../../core/money/amount.ts";
import { MAX_CALL_DEPTH, Workflow } from "../../formats/workflow-definition/workflow-schema.ts";
import type { Queries } from "../../platform/db/database.ts";
import { type DependencyRow, findDependencies } from "./dependency-queries.ts";

type Root = { id: string; type: string; content: string };

interface Call {
  /** The field in the root workflow, also for calls by nested workflows. */
  field: string;
  productId: string;
  pinned: string | undefined;
}

/** undefined: no product has this id. */
interface Dependency extends Call {
  product: DependencyRow | undefined;
  /** 1: called by the root workflow itself. */
  depth: number;
}

function findCalls(content: string, fieldOf: (index: number, isMap: boolean) => string): Call[] {
  const workflow = Workflow.safeParse(jsonOrNull(content));
  return (workflow.data?.steps ?? []).flatMap((step, index) => {
    const work = step.type === "map" ? step.do : step;
    if (work.type !== "product") return [];
    return [{ field: fieldOf(index, step.type === "map"), productId: work.productId, pinned: work.version }];
  });
}

function jsonOrNull(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const ownField = (index: number, isMap: boolean) =>
  formatPath(["content", "steps", index, ...(isMap ? ["do"] : []), "productId"]);

/** Avoids parsing definitions without calls. */
const mayCall = ({ type, content }: Root) => type === "WORKFLOW" && content.includes("prod_");

/** All products that a run of the workflow calls, also through nested workflows. One query per level; each product is expanded once. */
async function findAllDependencies(db: Queries, root: Root, readerId: string | null): Promise<Dependency[]> {
  const found: Dependency[] = [];
  const seen = new Set([root.id]);
  let calls = mayCall(root) ? findCalls(root.content, ownField) : [];
  for (let depth = 1; calls.length > 0 && depth <= MAX_CALL_DEPTH; depth++) {
    const rows = await findDependencies(db, idsIn(calls), readerId);
    const level = calls.map((call) => ({ ...call, depth, product: rowOf(rows, call.productId) }));
    found.push(...level);
    calls = level.flatMap(({ field, product }) => {
      if (!product || seen.has(product.id)) return [];
      seen.add(product.id);
      return product.type === "WORKFLOW" ? findCalls(product.content ?? "", () => field) : [];
    });
  }
  return found;
}

const idsIn = (calls: readonly Call[]) =>
  calls.map(({ productId }) => toUuid("prod", productId)).filter((id) => id !== null);

const rowOf = (rows: readonly DependencyRow[], productId: string) =>
  rows.find(({ id }) => id === toUuid("prod", productId));

/** Called products that a new buyer could not buy. */
export async function unavailableDependencies(db: Queries, root: Root): Promise<FieldProblem[]> {
  const problems = (await findAllDependencies(db, root, null)).flatMap((dependency) => {
    const reason = whyUnavailable(root, dependency);
    return reason ? [{ field: dependency.field, reason }] : [];
  });
  // Two nested calls of one dependency have the same field.
  return [...new Map(problems.map((problem) => [`${problem.field} ${problem.reason}`, problem])).values()];
}

function whyUnavailable(root: Root, { product, productId, pinned, depth }: Dependency): string | null {
  if (product?.id === root.id) return "leads back to this workflow: a workflow cannot call itself";
  if (!product?.onSale)
    return `names ${productId}, which is not on sale, so that no buyer could run this step: publish that product first, or name another`;
  if (product.type === "WORKFLOW" && depth >= MAX_CALL_DEPTH)
    return `calls workflows more than ${MAX_CALL_DEPTH} deep`;
  if (pinned !== undefined && !product.versions.includes(pinned))
    return `pins version ${pinned} of ${productId}, but who buys it today gets version ${product.version} of another major line or without that version`;
  return null;
}

type DependencySummary = Pick<ProductDetail, "dependencies" | "totalPrice">;

/** Includes the prices of products that the reader would still have to buy. */
export async function readDependencies(
  db: Queries,
  root: Root & { priceMinor: number; currency: string },
  readerId: string | null,
): Promise<DependencySummary> {
  const rows = new Map<string, DependencyRow | undefined>();
  for (const { productId, product } of await findAllDependencies(db, root, readerId)) {
    if (product?.id !== root.id) rows.set(productId, product);
  }
  const dependencies = [...rows].map(([productId, product]) => toDependency(productId, product));
  const missing = [...rows.values()].filter((product) => !product?.owned);
  const isKnown = missing.every((product) => product?.onSale && product.currency === root.currency);
  const totalMinor = missing.reduce((sum, product) => sum + (product?.priceMinor ?? 0), root.priceMinor);
  return { dependencies, totalPrice: isKnown ? toDecimal(totalMinor, root.currency) : null };
}

/** Shows only the id of a product that the reader can neither buy nor run: it may be a draft. */
function toDependency(
  productId: string,
  product: DependencyRow | undefined,
): DependencySummary["dependencies"][number] {
  const owned = product?.owned ?? false;
  const onSale = product?.onSale ?? false;
  if (!product || (!onSale && !owned))
    return { productId, title: null, type: null, price: null, currency: null, owned, onSale };
  const { title, type, currency, priceMinor } = product;
  return { productId, title, type, price: toDecimal(priceMinor, currency), currency, owned, onSale };
}

/** A part of the ETag that changes with the dependencies. */
export const dependencyEtag = ({ dependencies }: DependencySummary): string =>
  dependencies.length === 0
    ? ""
    : `~${createHash("sha256").update(JSON.stringify(dependencies)).digest("base64url").slice(0, 12)}`;
