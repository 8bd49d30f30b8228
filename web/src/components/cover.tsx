import { coverSvg } from "@stoa/contract/cover";
import { useMemo } from "react";

interface CoverProps {
  product: { id: string; type: string };
  /** The address of the seller's own image; null: a generated cover. */
  image?: string | null;
  alt?: string;
  className?: string;
  /** Whether it is in view at once. */
  isFirst?: boolean;
}

/** The picture of a product: the seller's image, or one that follows from its id. */
export function Cover({ product, image = null, alt = "", className = "", isFirst = false }: CoverProps) {
  const kind = product.type === "WORKFLOW" ? "WORKFLOW" : "PROMPT";
  const svg = useMemo(() => (image === null ? coverSvg(product.id, kind) : ""), [image, product.id, kind]);
  if (image !== null)
    return (
      <span className={`cover ${className}`}>
        <img src={image} alt={alt} width={640} height={400} loading={isFirst ? "eager" : "lazy"} />
      </span>
    );
  const art = { __html: svg };
  // biome-ignore lint/security/noDangerouslySetInnerHtml: coverSvg() draws shapes only; no text of the product is in it.
  return <span className={`cover ${className}`} aria-hidden="true" dangerouslySetInnerHTML={art} />;
}
