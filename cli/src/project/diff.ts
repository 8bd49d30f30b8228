import type { ProductDetail } from "@stoa/sdk";
import type { Cli } from "../cli.ts";
import { UsageError } from "../errors.ts";
import { compareProduct, listChanges } from "./compare.ts";
import { requireLocalProject } from "./local-project.ts";
import { readRemoteProduct } from "./remote-product.ts";
import { toDiff } from "./show-diff.ts";
import { readState } from "./state.ts";

export interface ProjectDiff {
  product: ProductDetail;
  lines: string[];
  /** What a push would change. */
  local: string[];
  /** What changed on the service since the last pull or push. */
  remote: string[];
}

/** Compares a folder with its product, and changes neither. */
export async function diffProject(cli: Cli, folder: string): Promise<ProjectDiff> {
  const { baseUrl } = await cli.settings();
  const local = await requireLocalProject(folder);
  const state = await readState(folder, baseUrl);
  if (state?.id === undefined)
    throw new UsageError(`${folder} has no product on the service yet`, "`stoa products push` creates it.");
  const { product } = await readRemoteProduct(await cli.stoa(), state.id);
  const comparison = compareProduct(local, product, state);
  return {
    product,
    lines: await toDiff({ name: local.file.name, local, product, comparison }),
    local: listChanges(comparison, "local", "both"),
    remote: listChanges(comparison, "remote", "both"),
  };
}
