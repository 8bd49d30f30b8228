import { useSyncExternalStore } from "react";
import type { SaveState, WorkflowSaver } from "./workflow-saver.ts";

export const useSaveState = (saver: WorkflowSaver): SaveState =>
  useSyncExternalStore(saver.subscribe, saver.state);
