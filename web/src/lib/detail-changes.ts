import type { ProductChecks, ProductDetail } from "@stoa/sdk";
import { formatBytes, formatMoney } from "./format.ts";
import { languageName } from "./languages.ts";
import { providerName } from "./providers.ts";

type Approved = NonNullable<ProductChecks["approved"]>;

/** A field of a product whose values are listed. A changed item of a list is removed and added. */
export interface DetailChange {
  name: string;
  isChanged: boolean;
  removed: DetailItem[];
  added: DetailItem[];
}

export interface DetailItem {
  text: string;
  /** The smallest size of an image, which may be gone from the storage. */
  image?: string;
}

/** The fields beside the texts, in the order of the product page. `approved.details` null: only those of the version. */
export function listDetailChanges(approved: Approved, product: ProductDetail): DetailChange[] {
  const { details } = approved;
  const ofVersion = [
    compare("Variables", approved.variables.map(showVariable), product.variables.map(showVariable)),
    // Those who may not read files get none.
    ...(product.files ? [compare("Files", approved.files.map(showFile), product.files.map(showFile))] : []),
  ];
  if (!details) return ofVersion;
  const money = (one: { price: number; currency: string }) => [formatMoney(one.price, one.currency)];
  return [
    compare("Category", optional(details.category), optional(product.category)),
    compare("Tags", details.tags, product.tags),
    compare("Price", money(details), money(product)),
    compare("Language", optional(details.lang, languageName), optional(product.lang, languageName)),
    compare("License", optional(details.license), optional(product.license)),
    compare(
      "Compatibility",
      details.compatibility.map(providerName),
      product.compatibility.map(providerName),
    ),
    compare("Models", showModels(details.models), showModels(product.models)),
    compare("Requirements", details.requirements, product.requirements),
    compare("Features", details.features, product.features),
    ...ofVersion,
    compare("Samples", details.samples.map(showSample), product.samples.map(showSample)),
    compareImages(details.gallery, product.gallery),
  ];
}

const optional = (value: string | null, show: (value: string) => string = String): string[] =>
  value === null ? [] : [show(value)];

/** Equal items are matched once each. Items in another order are a change, too. */
function compare(name: string, before: readonly string[], after: readonly string[]): DetailChange {
  const removed = without(before, after);
  const added = without(after, before);
  const isReordered =
    removed.length === 0 && added.length === 0 && before.some((item, at) => item !== after[at]);
  return {
    name,
    isChanged: isReordered || removed.length > 0 || added.length > 0,
    removed: (isReordered ? [before.join(", ")] : removed).map(toItem),
    added: (isReordered ? [after.join(", ")] : added).map(toItem),
  };
}

const toItem = (text: string): DetailItem => ({ text });

function without(items: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return items.filter((item) => {
    const at = left.indexOf(item);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
}

type Variable = ProductDetail["variables"][number];
type Sample = ProductDetail["samples"][number];
type Image = ProductDetail["gallery"][number];

const showVariable = ({ name, required, description, ...rest }: Variable): string =>
  [
    `${name}, ${required ? "required" : "optional"}`,
    ...(description ? [description] : []),
    ...Object.entries(rest).map(([key, value]) => `${key} ${JSON.stringify(value)}`),
  ].join(" · ");

const showFile = ({ name, size, sha256 }: { name: string; size: number; sha256: string }): string =>
  `${name} · ${formatBytes(size)} · SHA-256 ${sha256.slice(0, 12)}`;

const showModels = (models: Record<string, string>): string[] =>
  Object.entries(models)
    .map(([provider, model]) => `${providerName(provider)}: ${model}`)
    .toSorted();

const showSample = ({ input, output, model }: Sample): string =>
  `${model}\n${JSON.stringify(input)}\n${typeof output === "string" ? output : JSON.stringify(output)}`;

/** Two images may have the same description: the address is that of the bytes. */
function compareImages(before: readonly Image[], after: readonly Image[]): DetailChange {
  const show = ({ url, alt, width, height }: Image) =>
    `${alt || "Without a description"} · ${width} × ${height} · ${fingerprintOf(url)}`;
  const urls = new Map([...before, ...after].map((image) => [show(image), image.sizes[0]?.url ?? image.url]));
  const withImage = ({ text }: DetailItem): DetailItem => {
    const image = urls.get(text);
    return { text, ...(image !== undefined && { image }) };
  };
  const { removed, added, ...change } = compare("Images", before.map(show), after.map(show));
  return { ...change, removed: removed.map(withImage), added: added.map(withImage) };
}

const DIGEST = /[0-9a-f]{32,}/;
const fingerprintOf = (url: string): string => (DIGEST.exec(url)?.[0] ?? url).slice(0, 12);
