import type { ProductDetail } from "@stoa/sdk";
import { createContext, useContext } from "react";

const TestedProductContext = createContext<ProductDetail | null>(null);
export const TestedProductProvider = TestedProductContext.Provider;

/** The product as the service has stored it: that is what evaluations run. */
export function useTestedProduct(): ProductDetail {
  const product = useContext(TestedProductContext);
  if (!product) throw new Error("There is no tested product around");
  return product;
}
