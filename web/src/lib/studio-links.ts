export const NEW_PRODUCT: string = "/studio/products/new";

/** Where the author changes a product. */
export const editorPath = ({ id, type }: { id: string; type: string }): string =>
  type === "WORKFLOW" ? `/studio/workflows/${id}` : `/studio/products/${id}`;
