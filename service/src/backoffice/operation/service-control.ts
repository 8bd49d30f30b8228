declare module "../../core/context.ts" {
  interface Context {
    serviceControl: ServiceControl;
  }
}

/** What a restore does with the service that it runs in. */
export interface ServiceControl {
  /** Stops background work, which would wait for the tables that a restore locks. */
  pauseWork(): Promise<void>;
  /** Closes the service and starts it again in this process; null: this process cannot. */
  restart: (() => Promise<void>) | null;
}

export const createServiceControl = (): ServiceControl => ({ pauseWork: async () => {}, restart: null });
