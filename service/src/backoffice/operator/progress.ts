/** To stderr like logs: stdout has the box. `startedAt` is a Unix time in milliseconds. */
export const printProgress = (what: string, startedAt = performance.timeOrigin) =>
  console.error(`${secondsSince(startedAt).padStart(6)} s  ${what}`);

export const secondsSince = (startedAt: number) => ((Date.now() - startedAt) / 1000).toFixed(1);
