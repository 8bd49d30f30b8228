import { useEffect, useState } from "react";
import { showError } from "../lib/toasts.ts";
import { CheckIcon, CopyIcon } from "./icons.tsx";

const COPIED_MS = 2_000;

/** Copies a text; says so for two seconds. */
export function useCopy(text: string): { isCopied: boolean; copy: () => Promise<void> } {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), COPIED_MS);
    return () => clearTimeout(timer);
  }, [isCopied]);
  const copy = async () => setCopied(await copyText(text));
  return { isCopied, copy };
}

/** Reports a failure itself: the browser may forbid it, and origins that are not secure have no clipboard. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch (error) {
    showError("The text was not copied", error);
    return false;
  }
}

interface CopyButtonProps {
  text: string;
  /** What it copies, for a button with a word of its own: "Copy link". */
  label?: string;
  className?: string;
}

export function CopyButton({ text, label = "Copy", className = "btn s" }: CopyButtonProps) {
  const { isCopied, copy } = useCopy(text);
  return (
    <button type="button" className={className} onClick={copy}>
      {isCopied ? <CheckIcon /> : <CopyIcon />}
      <span aria-live="polite">{isCopied ? "Copied" : label}</span>
    </button>
  );
}
