import { useEffect, useRef } from "react";
import { STEP_TYPES } from "../../lib/workflow-document.ts";
import { Dialog, DialogButtons } from "../dialog.tsx";
import { STEP_HELP, STEP_ICONS } from "./step-types.tsx";

interface AddStepDialogProps {
  between?: [string, string];
  onAdd: (type: string) => void;
  onClose: () => void;
}

/** The types of steps, each with the letter that chooses it. */
export function AddStepDialog({ between, onAdd, onClose }: AddStepDialogProps) {
  const first = useRef<HTMLButtonElement>(null);
  useEffect(() => first.current?.focus(), []);
  const add = (type: string) => {
    onClose();
    onAdd(type);
  };
  return (
    <Dialog
      title={between ? `Add a step between ${between[0]} and ${between[1]}` : "Add a step"}
      onClose={onClose}
    >
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the letters belong to the buttons inside */}
      <div
        className="workflow-types"
        onKeyDown={(event) => {
          const type = STEP_TYPES.find((one) => STEP_HELP[one].key === event.key);
          if (!type || event.ctrlKey || event.metaKey) return;
          event.preventDefault();
          add(type);
        }}
      >
        {STEP_TYPES.map((type, at) => (
          <button key={type} type="button" ref={at === 0 ? first : null} onClick={() => add(type)}>
            {STEP_ICONS[type]}
            <b>{type}</b>
            <span className="soft sm grow">{STEP_HELP[type].text}</span>
            <span className="kbd">{STEP_HELP[type].key.toUpperCase()}</span>
          </button>
        ))}
      </div>
      <DialogButtons>
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </DialogButtons>
    </Dialog>
  );
}
