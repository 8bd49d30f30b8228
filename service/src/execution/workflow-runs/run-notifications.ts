import type { WorkflowExecution } from "@stoa/contract";
import type { Notifications } from "../../platform/db/notifications.ts";

declare module "../../core/context.ts" {
  interface Context {
    /** Wakes requests that wait for a workflow run. */
    runNotifications: RunNotifications;
  }
}

/** `ended`: the execution as its driver in this process wrote it at the end; null: the listener must read. */
type Listener = (ended: WorkflowExecution | null) => void;

/** Passes notifications of all processes about runs to the listeners in this one. */
export class RunNotifications {
  readonly #ofRun = new Map<string, Set<Listener>>();
  readonly #ofAll = new Set<(id: string) => void>();

  constructor(notifications: Pick<Notifications, "register">) {
    notifications.register({
      on: {
        workflow_run: (id) => {
          this.#notifyAll(id);
          this.#notify(id, null);
        },
        workflow_due: (id) => this.#notifyAll(id),
        workflow_end: (id) => this.onEnded(id, null),
      },
      // Notifications may be lost: all listeners read again.
      clear: () => {
        for (const id of [...this.#ofRun.keys()]) {
          this.#notifyAll(id);
          this.#notify(id, null);
        }
      },
    });
  }

  /** A driver of this process reports the end of its run here, too: its database notification takes longer. */
  onEnded(id: string, execution: WorkflowExecution | null): void {
    this.#notify(id, execution);
  }

  /** Whether a listener waits for this run. */
  isAwaited(id: string): boolean {
    return this.#ofRun.has(id);
  }

  /** Calls the listener for due runs and for signals. Returns the function that unsubscribes. */
  onAnyRun(listener: (id: string) => void): () => void {
    this.#ofAll.add(listener);
    return () => void this.#ofAll.delete(listener);
  }

  /** Calls the listener for signals to one run and for its end. Returns the function that unsubscribes. */
  onRun(id: string, listener: Listener): () => void {
    const listeners = this.#ofRun.get(id) ?? new Set();
    this.#ofRun.set(id, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#ofRun.delete(id);
    };
  }

  #notifyAll(id: string): void {
    for (const listener of this.#ofAll) listener(id);
  }

  #notify(id: string, ended: WorkflowExecution | null): void {
    for (const listener of this.#ofRun.get(id) ?? []) listener(ended);
  }
}
