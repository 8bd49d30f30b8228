import { z } from "zod";

export type Json = Record<string, unknown>;

/** Collects schemas with an id as components, so that each is in the document once. */
export class Schemas {
  readonly components: Record<string, Json> = {};

  of(schema: z.ZodType, io: "input" | "output"): Json {
    const {
      $schema: _,
      $defs,
      ...own
    } = z.toJSONSchema(schema, {
      target: "draft-2020-12",
      io,
      unrepresentable: "any",
    }) as Json;
    for (const [id, definition] of Object.entries(($defs as Record<string, Json> | undefined) ?? {})) {
      this.components[id] ??= hoisted(definition);
    }
    const id = schema.meta()?.id;
    if (!id) return hoisted(own);
    this.components[id] ??= hoisted(own);
    return { $ref: `#/components/schemas/${id}` };
  }
}

/** Replaces `#/$defs/X` of a single schema by `#/components/schemas/X`. */
function hoisted(schema: Json): Json {
  const text = JSON.stringify(schema, (key, value) =>
    key === "id" && typeof value === "string" ? undefined : value,
  );
  return JSON.parse(text.replaceAll('"#/$defs/', '"#/components/schemas/'));
}
