import { z } from "zod";
import { toVisibleText, visibleText } from "../core/visible-text.ts";

export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/;
/** Public, so that users know the inputs before buying. */
export const Variable = z
  .strictObject({
    name: z.string().regex(VARIABLE_NAME, "must be a name such as topic"),
    description: visibleText(500).optional(),
    required: z.boolean().default(true),
    default: z.string().overwrite(toVisibleText).max(32_768).optional(),
    enum: z.array(z.string().overwrite(toVisibleText).max(1_000)).min(1).max(100).optional(),
    maxLength: z.int().min(1).max(32_768).optional().describe("Characters"),
  })
  .meta({ id: "Variable" });

export type Variable = z.output<typeof Variable>;
