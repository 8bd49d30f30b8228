/** Consecutive failures that open a circuit. */
export const FAULTS_TO_OPEN = 5;
export const OPEN_MS = 30_000;
/** Each failed trial doubles the pause, up to this. */
export const MAX_OPEN_MS = 300_000;
/** Random share of the pause, so that processes do not all try at once after one outage. */
export const JITTER = 0.2;
/** Longer than the deadline of a call: after this time an unfinished trial does not count. */
export const TRIAL_MS = 180_000;
/** Failing circuits in memory. The oldest is dropped, which closes it. */
const MAX_CIRCUITS = 10_000;

export interface CircuitBreakerOptions {
  faultsToOpen?: number;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
  /** In [0, 1). */
  random?: () => number;
}

/** The permit of one call, which reports its result. Late or repeated reports have no effect on a later state. */
export interface CircuitPermit {
  /** The response began, which is enough for a trial: other calls need not wait for its end. */
  onFirstByte(): void;
  /** The provider responded, even with a refusal. */
  onSuccess(): void;
  /** The provider failed. Returns whether this opened the circuit. */
  onFailure(): boolean;
  /** The caller aborted, so nothing is known about the provider. */
  onAbandon(): void;
}

/** Only names with failures have an entry. */
interface Circuit {
  faults: number;
  /** When a trial may start; null: closed. */
  openUntil: number | null;
  pauseMs: number;
  trial: { permit: CircuitPermit; until: number } | null;
}

/**
 * A circuit breaker for each name: closed, open for a pause, then half-open for one trial. State is in memory: each process learns
 * for itself.
 */
export class CircuitBreaker {
  readonly #circuits = new Map<string, Circuit>();
  readonly #faultsToOpen: number;
  readonly #now: () => number;
  readonly #random: () => number;

  constructor(options: CircuitBreakerOptions = {}) {
    const { faultsToOpen = FAULTS_TO_OPEN, now = () => performance.now(), random = Math.random } = options;
    this.#faultsToOpen = faultsToOpen;
    this.#now = now;
    this.#random = random;
  }

  /** Returns a permit, or the seconds to wait. */
  enter(name: string): CircuitPermit | number {
    const waitSeconds = this.secondsToWait(name);
    if (waitSeconds > 0) return waitSeconds;
    const circuit = this.#circuits.get(name);
    const permit = this.#createPermit(name);
    if (circuit && circuit.openUntil !== null) circuit.trial = { permit, until: this.#now() + TRIAL_MS };
    return permit;
  }

  /** Seconds that a call must wait now; 0: none. */
  secondsToWait(name: string): number {
    const circuit = this.#circuits.get(name);
    if (!circuit || circuit.openUntil === null) return 0;
    const now = this.#now();
    if (now < circuit.openUntil) return secondsOf(circuit.openUntil - now);
    return circuit.trial && now < circuit.trial.until ? 1 : 0;
  }

  #createPermit(name: string): CircuitPermit {
    const permit: CircuitPermit = {
      onFirstByte: () => {
        if (this.#circuits.get(name)?.trial?.permit === permit) this.#circuits.delete(name);
      },
      onSuccess: () => {
        if (this.#counts(name, permit)) this.#circuits.delete(name);
      },
      onFailure: () => this.#counts(name, permit) && this.#addFault(name),
      onAbandon: () => {
        const circuit = this.#circuits.get(name);
        if (circuit?.trial?.permit === permit) circuit.trial = null;
      },
    };
    return permit;
  }

  /** Calls from before the circuit opened do not count; only its trial does. */
  #counts(name: string, permit: CircuitPermit): boolean {
    const circuit = this.#circuits.get(name);
    return !circuit || circuit.openUntil === null || circuit.trial?.permit === permit;
  }

  /** Returns whether this opened the circuit, or opened it again. */
  #addFault(name: string): boolean {
    const circuit = this.#circuits.get(name) ?? this.#newCircuit(name);
    circuit.faults++;
    if (circuit.faults < this.#faultsToOpen) return false;
    circuit.pauseMs = Math.min(circuit.openUntil === null ? OPEN_MS : circuit.pauseMs * 2, MAX_OPEN_MS);
    circuit.openUntil = this.#now() + circuit.pauseMs * (1 + JITTER * this.#random());
    circuit.trial = null;
    return true;
  }

  #newCircuit(name: string): Circuit {
    const [oldest] = this.#circuits.keys();
    if (this.#circuits.size >= MAX_CIRCUITS && oldest !== undefined) this.#circuits.delete(oldest);
    const circuit = { faults: 0, openUntil: null, pauseMs: 0, trial: null };
    this.#circuits.set(name, circuit);
    return circuit;
  }
}

const secondsOf = (ms: number) => Math.max(1, Math.ceil(ms / 1000));
