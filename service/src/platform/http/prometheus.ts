import {
  AggregatorRegistry,
  collectDefaultMetrics,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";

export interface PrometheusMetrics {
  observeRequest(method: string, route: string, status: number, ms: number): void;
  text(): Promise<string>;
  /** What this process counts itself, for the process that answers. */
  own(): Promise<ProcessMetrics["metrics"]>;
  contentType: string;
}

/** The metrics of one process of a node. NaN is null after its way as JSON. */
export interface ProcessMetrics {
  process: string;
  metrics: MetricObjectWithValues<MetricValue<string>>[];
}

/** The other processes that answer at the same port, or work for it. */
export interface Siblings {
  /** The name of this process among them. */
  process: string;
  collectMetrics(): Promise<ProcessMetrics[]>;
}

interface JobGaugeValues {
  name: string;
  lastSuccessAt: Date | null;
  waiting: number;
  givenUp: number;
}

interface OpenMoney {
  kind: string;
  state: string;
  count: number;
  oldest: { since: Date } | null;
  dueAt: Date | null;
}

interface LedgerCheck {
  endedAt: Date;
  problems: number;
}

interface PendingSales {
  count: number;
  oldestAt: Date | null;
}

/** The registry counts events; the functions are called at each scrape. */
export interface MetricSources {
  registry: Registry;
  jobs(): Promise<JobGaugeValues[]>;
  openMoney(): Promise<OpenMoney[]>;
  /** undefined: no verification has run yet. */
  lastLedgerCheck(): Promise<LedgerCheck | undefined>;
  /** Orders that the rolled-up sums of analytics do not contain yet. */
  pendingSales(): Promise<PendingSales>;
  /** The time of the oldest event without webhook deliveries; null: none. */
  oldestPendingEvent(): Promise<Date | null>;
  /** Milliseconds by which this process is ahead of the database. */
  clockSkew(): Promise<number>;
  now(): Date;
  /** null: this process is the whole node. */
  siblings?: Siblings | null;
}

let defaultMetrics: Registry | undefined;

/** Created once: prom-client cannot end the timer and the observer of these metrics, so each closed service would leave them behind. */
function processRegistry(): Registry {
  if (defaultMetrics === undefined) {
    defaultMetrics = new Registry();
    collectDefaultMetrics({ register: defaultMetrics });
  }
  return defaultMetrics;
}

export function createPrometheusMetrics(sources: MetricSources): PrometheusMetrics {
  const { registry } = sources;
  const ownRegistry = () => Registry.merge([processRegistry(), registry]);
  // Collects from the start, not from the first request of /metrics.
  processRegistry();
  const duration = new Histogram({
    name: "http_request_duration_seconds",
    help: "Time from the request's first byte to the answer's last",
    labelNames: ["method", "route", "status"],
    buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60, 120],
    registers: [registry],
  });
  // The same in all processes: read by the one that answers.
  const shared = new Registry();
  const readJobs = jobGauges(shared, sources);
  const readOpenMoney = openMoneyGauges(shared, sources);
  const readVerdict = ledgerGauges(shared, sources);
  const readWaiting = pendingSalesGauges(shared, sources);
  const readClock = clockGauge(shared, sources);
  const readEvents = eventGauge(shared, sources);
  return {
    observeRequest: (method, route, status, ms) => duration.observe({ method, route, status }, ms / 1000),
    async text() {
      await Promise.all([
        readJobs(),
        readOpenMoney(),
        readVerdict(),
        readWaiting(),
        readClock(),
        readEvents(),
      ]);
      const own = ownRegistry();
      const ofProcesses = sources.siblings ? await mergeProcesses(own, sources.siblings) : own;
      return Registry.merge([ofProcesses, shared]).metrics();
    },
    own: () => ownRegistry().getMetricsAsJSON(),
    contentType: registry.contentType,
  };
}

/** Each process has series of its own: a sum over processes would fall, and so look like a new start, when one of them is replaced. */
async function mergeProcesses(registry: Registry, { process, collectMetrics }: Siblings): Promise<Registry> {
  const own = { process, metrics: await registry.getMetricsAsJSON() };
  return AggregatorRegistry.aggregate([own, ...(await collectMetrics())].map(withProcessLabel));
}

const withProcessLabel = ({ process, metrics }: ProcessMetrics) =>
  metrics.map((metric) => ({
    ...metric,
    // Of values with different labels, nothing is added up.
    aggregator: "sum",
    values: metric.values.map((value) => ({
      ...value,
      value: value.value ?? Number.NaN,
      labels: { ...value.labels, process },
    })),
  }));

/** While the database is unavailable, other metrics must still be readable. */
const emptyOnError = <T>(read: () => Promise<T[]>): Promise<T[]> => read().catch(() => []);

const secondsSince = (moment: Date | null, now: Date) =>
  moment ? (now.getTime() - moment.getTime()) / 1000 : 0;

/** The jobs of all processes, from the database. Returns the function that updates the gauges. */
function jobGauges(registry: Registry, { jobs }: MetricSources): () => Promise<void> {
  const registers = [registry];
  const labelNames = ["name"] as const;
  const states = new Gauge({
    name: "jobs",
    help: "Jobs that wait to be done, and those that were given up in the last week, the same on every process",
    labelNames: ["name", "state"],
    registers,
  });
  const lastSuccess = new Gauge({
    name: "job_last_success_timestamp_seconds",
    help: "When a job was last done by any process",
    labelNames,
    registers,
  });
  return async () => {
    const found = await emptyOnError(jobs);
    for (const metric of [states, lastSuccess]) metric.reset();
    for (const { name, ...job } of found) {
      states.set({ name, state: "waiting" }, job.waiting);
      states.set({ name, state: "given up" }, job.givenUp);
      if (job.lastSuccessAt) lastSuccess.set({ name }, job.lastSuccessAt.getTime() / 1000);
    }
  };
}

function clockGauge(registry: Registry, { clockSkew }: MetricSources): () => Promise<void> {
  const ahead = new Gauge({
    name: "clock_ahead_seconds",
    help: "By how much the clock of this process is ahead of the database's; negative: behind",
    registers: [registry],
  });
  return async () => {
    const [skew] = await emptyOnError(async () => [await clockSkew()]);
    ahead.set(skew === undefined ? Number.NaN : skew / 1000);
  };
}

function openMoneyGauges(registry: Registry, { openMoney, now }: MetricSources): () => Promise<void> {
  const registers = [registry];
  const labelNames = ["kind", "state"] as const;
  const open = new Gauge({
    name: "money_open",
    help: "Orders, payments for plans, refunds, payouts and disputes that have not ended",
    labelNames,
    registers,
  });
  const age = new Gauge({
    name: "money_open_oldest_seconds",
    help: "Age of the oldest of them; 0: none",
    labelNames,
    registers,
  });
  const due = new Gauge({
    name: "money_open_due_timestamp_seconds",
    help: "The nearest known deadline for evidence",
    labelNames,
    registers,
  });
  return async () => {
    const found = await emptyOnError(openMoney);
    for (const metric of [open, age, due]) metric.reset();
    for (const { kind, state, count, oldest, dueAt } of found) {
      open.set({ kind, state }, count);
      age.set({ kind, state }, secondsSince(oldest?.since ?? null, now()));
      if (dueAt) due.set({ kind, state }, dueAt.getTime() / 1000);
    }
  };
}

/** The nightly verification of any process. */
function ledgerGauges(registry: Registry, { lastLedgerCheck }: MetricSources): () => Promise<void> {
  const registers = [registry];
  const problems = new Gauge({
    name: "ledger_problems",
    help: "Problems found by the last nightly ledger verification; NaN: none has run yet",
    registers,
  });
  const at = new Gauge({
    name: "ledger_verified_timestamp_seconds",
    help: "Time of the last nightly ledger verification; NaN: none has run yet",
    registers,
  });
  return async () => {
    const [last] = await emptyOnError(async () => [await lastLedgerCheck()]);
    problems.set(last?.problems ?? Number.NaN);
    at.set(last ? last.endedAt.getTime() / 1000 : Number.NaN);
  };
}

/** The backlog of analytics of all processes. */
function pendingSalesGauges(registry: Registry, { pendingSales, now }: MetricSources): () => Promise<void> {
  const registers = [registry];
  const waiting = new Gauge({
    name: "analytics_waiting",
    help: "Bookings of orders that wait to be added to the sums of analytics; NaN: the database is away",
    registers,
  });
  const age = new Gauge({
    name: "analytics_waiting_oldest_seconds",
    help: "Age of the oldest of them, which may be long before it was booked; 0: none",
    registers,
  });
  return async () => {
    const [found] = await emptyOnError(async () => [await pendingSales()]);
    waiting.set(found?.count ?? Number.NaN);
    age.set(found ? secondsSince(found.oldestAt, now()) : Number.NaN);
  };
}

/** Above some seconds, no worker creates deliveries. */
function eventGauge(
  registry: Registry,
  { oldestPendingEvent: oldestUnsentEvent, now }: MetricSources,
): () => Promise<void> {
  const age = new Gauge({
    name: "webhook_events_waiting_oldest_seconds",
    help: "Age of the oldest event without webhook deliveries; 0: none; NaN: the database is unavailable",
    registers: [registry],
  });
  return async () => {
    const [found] = await emptyOnError(async () => [await oldestUnsentEvent()]);
    age.set(found === undefined ? Number.NaN : secondsSince(found, now()));
  };
}
