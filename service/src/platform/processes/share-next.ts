/** Runs `work` once at a time. Callers during a run share the next one, because the present one may have begun before their change. */
export function shareNext(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> = Promise.resolve();
  let next: Promise<void> | null = null;
  return () => {
    next ??= running.then(() => {
      next = null;
      running = work().catch(() => {});
      return running;
    });
    return next;
  };
}
