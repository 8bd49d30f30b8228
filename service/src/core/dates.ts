export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

export const daysAfter = (moment: Date, days: number): Date => new Date(moment.getTime() + days * DAY_MS);

/** "2027-02-03", in UTC. */
export const dayOf = (moment: Date): string => moment.toISOString().slice(0, 10);

const longDate = new Intl.DateTimeFormat("en-GB", { dateStyle: "long", timeZone: "UTC" });

/** "3 February 2027", in UTC, so that every reader sees the same day. */
export const toLongDate = (moment: Date): string => longDate.format(moment);
