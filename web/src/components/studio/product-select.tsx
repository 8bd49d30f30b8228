import { useQuery } from "@tanstack/react-query";
import { productNamesQuery } from "../../queries/studio.ts";
import { FilterSelect } from "../filters.tsx";

interface ProductSelectProps {
  value: string | undefined;
  onChange: (productId: string | undefined) => void;
}

/** A filter of a list by one of the seller's products. */
export function ProductSelect({ value, onChange }: ProductSelectProps) {
  const { data } = useQuery(productNamesQuery);
  const options = (data?.data ?? []).map(({ id, title }) => [id, title] as const);
  const isListed = value === undefined || options.some(([id]) => id === value);
  return (
    <FilterSelect
      label="Product"
      none="All products"
      value={value}
      options={isListed ? options : [...options, [value, "One product"] as const]}
      onChange={onChange}
    />
  );
}
