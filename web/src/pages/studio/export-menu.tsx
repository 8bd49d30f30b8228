import type { ProductCard } from "@stoa/sdk";
import { stoa } from "../../api.ts";
import { RowMenu } from "../../components/row-menu.tsx";
import { saveFile, saveResponse } from "../../lib/save-file.ts";
import { showError } from "../../lib/toasts.ts";

/** All products as a file that the import reads. */
export const ExportMenu = () => (
  <RowMenu
    label="Export all products"
    actions={[
      { label: "Export all as JSON Lines", onSelect: () => void saveExport("jsonl") },
      { label: "Export all as Markdown (zip)", onSelect: () => void saveExport("markdown") },
    ]}
  />
);

async function saveExport(format: "jsonl" | "markdown"): Promise<void> {
  try {
    await saveResponse(await stoa.products.export({ format }));
  } catch (error) {
    showError("The products were not exported", error);
  }
}

/** Only these, as JSON Lines. */
export async function exportProducts(products: ProductCard[]): Promise<void> {
  const ids = new Set(products.map(({ id }) => id));
  try {
    const text = await (await stoa.products.export({ format: "jsonl" })).text();
    const lines = text
      .split("\n")
      .filter((line) => line !== "" && ids.has((JSON.parse(line) as { id: string }).id));
    saveFile("products.jsonl", "application/jsonl", `${lines.join("\n")}\n`);
  } catch (error) {
    showError("The products were not exported", error);
  }
}
