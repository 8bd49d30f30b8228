import { preloadedPart } from "../../lib/preloaded-part.tsx";

export const [CodeEditor, preloadCodeEditor] = preloadedPart(() => import("./code-editor.tsx"));
