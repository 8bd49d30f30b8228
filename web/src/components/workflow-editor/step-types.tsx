import type { ReactNode } from "react";
import { formatWait } from "../../lib/duration.ts";
import { isObject, type JsonObject, type StepType, textOf } from "../../lib/workflow-document.ts";
import {
  ApprovalIcon,
  DelayIcon,
  EmbeddingIcon,
  MapIcon,
  PackageIcon,
  PromptIcon,
  TransformIcon,
} from "../icons.tsx";

export const STEP_ICONS: Record<string, ReactNode> = {
  prompt: <PromptIcon />,
  embedding: <EmbeddingIcon />,
  transform: <TransformIcon />,
  map: <MapIcon />,
  approval: <ApprovalIcon />,
  delay: <DelayIcon />,
  product: <PackageIcon />,
};

/** What a step does, and the letter that adds one. */
export const STEP_HELP: Record<StepType, { key: string; text: string }> = {
  prompt: { key: "p", text: "asks a model" },
  map: { key: "m", text: "does something with each item of a list" },
  product: { key: "o", text: "runs another product" },
  approval: { key: "a", text: "waits until a person agrees" },
  transform: { key: "t", text: "computes a value" },
  embedding: { key: "e", text: "compares texts by their embeddings" },
  delay: { key: "d", text: "waits for some time" },
};

/** The second line of a step on the canvas. */
export function detailOf(step: JsonObject): string {
  const work = isObject(step["do"]) ? step["do"] : step;
  const type = textOf(step["type"]);
  if (type === "approval") return "Asks the buyer";
  if (type === "delay") return typeof step["seconds"] === "number" ? formatWait(step["seconds"]) : "";
  if (type === "transform") return textOf(step["value"]);
  return (
    textOf(work["model"]) || textOf(work["provider"]) || textOf(work["productId"]) || textOf(work["value"])
  );
}

/** What a drag from the palette carries. */
export const DRAGGED_TYPE = "application/x-stoa-step";
