import type { ProductDetail, Stoa } from "@stoa/sdk";
import { CommandError } from "../errors.ts";

export interface RemoteProduct {
  product: ProductDetail;
  etag: string | null;
}

export async function readRemoteProduct(stoa: Stoa, id: string): Promise<RemoteProduct> {
  try {
    const { data: product, headers } = await stoa.products.get(id).withResponse();
    if (product.content !== null) return { product, etag: headers.get("etag") };
  } catch (error) {
    if ((error as { code?: string }).code !== "PRODUCT_NOT_FOUND") throw error;
    throw new CommandError(
      `The service has no product ${id} for you: it was deleted, or belongs to another account`,
      "`stoa whoami` shows the account. To create a new product from this folder, delete its folder .stoa.",
    );
  }
  throw new CommandError(`You may not read the content of ${id}`, "Its author can pull it, and its buyers.");
}
