import { coverSvg } from "@stoa/contract/cover";
import type { ProductCard } from "@stoa/sdk";

/** Columns in perspective: the left edge and the width of each, in units of the picture. */
const COLUMNS: [number, number][] = [
  [0, 104],
  [133, 87],
  [249, 73],
  [346, 61],
  [427, 50],
  [494, 41],
  [549, 39],
];
const TOP_SLOPE = 0.135;
const BOTTOM_SLOPE = -0.19;
const topAt = (x: number) => 104 + x * TOP_SLOPE;
const bottomAt = (x: number) => 404 + x * BOTTOM_SLOPE;

/** The mark at full size, its columns filled with covers. Decoration. */
export function Colonnade({ products }: { products: ProductCard[] }) {
  const shown = COLUMNS.slice(0, products.length);
  if (shown.length === 0) return null;
  return (
    <svg className="colonnade" viewBox="-12 44 600 376" aria-hidden="true">
      <path d="M0 412L588 296.28V290.28L0 402Z" fill="var(--line)" />
      <path d="M-12 44L588 146V164L-12 84Z" fill="var(--ink)" />
      {shown.map(([x, width], at) => (
        <Column key={x} x={x} width={width} product={products[at]} />
      ))}
    </svg>
  );
}

function Column({ x, width, product }: { x: number; width: number; product: ProductCard | undefined }) {
  if (!product) return null;
  const id = `column-${x}`;
  const [right, height] = [x + width, bottomAt(x) - topAt(x)];
  const outline = `M${x} ${topAt(x)}L${right} ${topAt(right)}V${bottomAt(right)}L${x} ${bottomAt(x)}Z`;
  const svg = coverSvg(product.id, product.type === "WORKFLOW" ? "WORKFLOW" : "PROMPT");
  return (
    <>
      <clipPath id={id}>
        <path d={outline} />
      </clipPath>
      <g clipPath={`url(#${id})`}>
        <svg
          x={x + width / 2 - height * 0.8}
          y={topAt(x)}
          width={height * 1.6}
          height={height}
          viewBox="0 0 320 200"
          preserveAspectRatio="xMidYMid slice"
          // biome-ignore lint/security/noDangerouslySetInnerHtml: coverSvg() draws shapes only; no text of the product is in it.
          dangerouslySetInnerHTML={{ __html: svg }}
        />
      </g>
    </>
  );
}
