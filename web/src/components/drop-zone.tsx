import { type DragEvent, useRef, useState } from "react";
import { UploadIcon } from "./icons.tsx";

interface DropZoneProps {
  /** "Image file" */
  label: string;
  hint: string;
  accept?: string;
  onFiles: (files: File[]) => void;
}

/** A place to drop files on, with a button that does the same. */
export function DropZone({ label, hint, accept, onFiles }: DropZoneProps) {
  const picker = useRef<HTMLInputElement>(null);
  const [isOver, setOver] = useState(false);
  const drop = (event: DragEvent) => {
    event.preventDefault();
    setOver(false);
    onFiles([...event.dataTransfer.files]);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same
    <div
      className={isOver ? "editor-drop is-over" : "editor-drop"}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      <input
        ref={picker}
        type="file"
        multiple
        className="hidden"
        aria-label={label}
        tabIndex={-1}
        {...(accept && { accept })}
        onChange={({ target }) => {
          const files = [...(target.files ?? [])];
          // The same file can be chosen again.
          target.value = "";
          if (files.length > 0) onFiles(files);
        }}
      />
      <button type="button" className="btn" onClick={() => picker.current?.click()}>
        <UploadIcon /> Choose files
      </button>
      <span className="sm soft">or drop them here. {hint}</span>
    </div>
  );
}
