import { formatCount } from "../../lib/format.ts";
import { isObject, STEP_TYPES } from "../../lib/workflow-document.ts";
import { FlagIcon } from "../icons.tsx";
import { INPUT, RESULT, useEditor } from "./editor-context.ts";
import { DRAGGED_TYPE, STEP_HELP, STEP_ICONS } from "./step-types.tsx";

/** The types of steps: a click adds one behind the selected step, a drop where it falls. */
export function Palette() {
  const { addStep, select, selection, definition } = useEditor();
  const input = isObject(definition["input"]) ? definition["input"]["properties"] : {};
  return (
    <nav className="workflow-palette" aria-label="Parts of a workflow">
      <p className="label">
        Steps <span className="kbd">A</span>
      </p>
      {STEP_TYPES.map((type) => (
        <button
          key={type}
          type="button"
          draggable
          title={`${type}: ${STEP_HELP[type].text}`}
          aria-label={`Add ${type}`}
          onDragStart={({ dataTransfer }) => {
            dataTransfer.setData(DRAGGED_TYPE, type);
            dataTransfer.effectAllowed = "copy";
          }}
          onClick={() => addStep(type)}
        >
          {STEP_ICONS[type]} <span>{type}</span>
        </button>
      ))}
      <p className="label">Workflow</p>
      <button type="button" aria-pressed={selection === INPUT} onClick={() => select(INPUT)}>
        <FlagIcon /> <span>Input</span>
        <span className="faint num">{formatCount(isObject(input) ? Object.keys(input).length : 0)}</span>
      </button>
      <button type="button" aria-pressed={selection === RESULT} onClick={() => select(RESULT)}>
        <FlagIcon /> <span>Result</span>
      </button>
    </nav>
  );
}
