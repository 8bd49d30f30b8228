/** The statuses by which a history can be filtered. */
export const STATUS_FILTERS = ["running", "waiting", "completed", "failed", "canceled"] as const;
