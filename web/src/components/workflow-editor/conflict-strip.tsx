import { useEffect, useRef, useState } from "react";
import type { WorkflowCommand } from "../../lib/workflow-commands.ts";
import { AlertIcon } from "../icons.tsx";
import { useSaveState } from "./use-save-state.ts";
import { WorkflowDiffView } from "./workflow-diff.tsx";
import type { WorkflowSaver } from "./workflow-saver.ts";

interface ConflictStripProps {
  saver: WorkflowSaver;
  text: string;
  execute: (command: WorkflowCommand) => void;
}

/** Another tab saved something else. Both are there until a person has chosen; what is taken can be undone. */
export function ConflictStrip({ saver, text, execute }: ConflictStripProps) {
  const state = useSaveState(saver);
  const strip = useRef<HTMLDivElement>(null);
  const [isCompared, compare] = useState(false);
  const isOpen = state.kind === "conflict";
  useEffect(() => {
    if (isOpen) strip.current?.focus();
  }, [isOpen]);
  if (!isOpen) return null;
  const { theirs } = state;
  const take = () => {
    saver.acknowledge(theirs);
    execute({ kind: "set-source", text: theirs.text });
  };
  return (
    <div className="strip warning workflow-conflict" role="alert" tabIndex={-1} ref={strip}>
      <AlertIcon size={20} />
      <div className="grow stack">
        <p>
          <b>Changed in another tab.</b> Nothing is lost: keep yours on top of that, or take what is saved
          now. Undo leads back to yours.
        </p>
        {isCompared && <WorkflowDiffView before={theirs.text} after={text} />}
      </div>
      <div className="row wrap">
        <button
          type="button"
          className="btn s"
          aria-expanded={isCompared}
          onClick={() => compare(!isCompared)}
        >
          Compare
        </button>
        <button type="button" className="btn s" onClick={() => saver.acknowledge(theirs)}>
          Keep mine
        </button>
        <button type="button" className="btn s" onClick={take}>
          Take theirs
        </button>
      </div>
    </div>
  );
}
