import { type Finding, type Subject, UndecidableError } from "./finding.ts";

export function latency({ latencyMs, threshold }: Subject): Finding {
  if (latencyMs === null) throw new UndecidableError("The latency of the run is unknown.");
  return atMost(latencyMs, threshold, "The latency", " ms");
}

export function cost({ costUsd, threshold }: Subject): Finding {
  if (costUsd === null) throw new UndecidableError("The cost of the run is unknown.");
  return atMost(costUsd, threshold, "The cost", " USD");
}

function atMost(value: number, threshold: number | undefined, name: string, unit: string): Finding {
  if (threshold === undefined) throw new UndecidableError("The assertion needs a threshold.");
  return {
    isMet: value <= threshold,
    fact: `${name} is ${value}${unit}; the threshold is ${threshold}${unit}.`,
  };
}
