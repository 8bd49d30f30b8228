/** So many faults in a row, of whatever was asked with one key at one address, and it is left alone for a while. */
export const FAULTS_TO_OPEN = 5;
export const OPEN_MS = 30_000;
/** Each trial that fails doubles the pause, up to this. */
export const MAX_OPEN_MS = 300_000;
/** A part of the pause, drawn anew each time, so that processes which one outage stopped do not all try at once. */
export const JITTER = 0.2;
/** Past the last deadline of a call: a trial that nobody ended by then is none. */
export const TRIAL_MS = 180_000;
/** As many failing circuits are remembered; the oldest is forgotten, which lets its calls through. */
const MAX_CIRCUITS = 10_000;

export interface CircuitBreakerOptions {
  faultsToOpen?: number;
  /** Milliseconds of a clock that only goes forward. */
  now?: () => number;
  /** From 0 to 1. */
  random?: () => number;
}

/** A call that was let through. It says how it ended; said late, or twice, it moves nothing that went on meanwhile. */
export interface CircuitPermit {
  /** The provider began to answer, which is all that a trial asks: others need not wait for its end. */
  onFirstByte(): void;
  /** The provider answered, be it with a refusal: it is there. */
  onSuccess(): void;
  /** The provider failed; answers whether it is left alone from now on. */
  onFailure(): boolean;
  /** Nothing was learned of the provider: its caller gave up. */
  onAbandon(): void;
}

/** Only of what failed last: a circuit without faults is no entry. */
interface Circuit {
  faults: number;
  /** When a trial may be made; null: closed. */
  openUntil: number | null;
  pauseMs: number;
  trial: { pass: CircuitPermit; until: number } | null;
}

/**
 * A circuit breaker for each name: closed, open for a pause, then half-open for one trial. In memory: each process finds
 * out for itself, and none waits for another's word.
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

  /** Lets a call through, or says how many seconds it should wait. */
  enter(name: string): CircuitPermit | number {
    const waitSeconds = this.secondsToWait(name);
    if (waitSeconds > 0) return waitSeconds;
    const circuit = this.#circuits.get(name);
    const pass = this.#passTo(name);
    if (circuit && circuit.openUntil !== null) circuit.trial = { pass, until: this.#now() + TRIAL_MS };
    return pass;
  }

  /** How many seconds a call should wait that was made now; 0: it would be let through. */
  secondsToWait(name: string): number {
    const circuit = this.#circuits.get(name);
    if (!circuit || circuit.openUntil === null) return 0;
    const now = this.#now();
    if (now < circuit.openUntil) return secondsOf(circuit.openUntil - now);
    return circuit.trial && now < circuit.trial.until ? 1 : 0;
  }

  #passTo(name: string): CircuitPermit {
    const pass: CircuitPermit = {
      onFirstByte: () => {
        if (this.#circuits.get(name)?.trial?.pass === pass) this.#circuits.delete(name);
      },
      onSuccess: () => {
        if (this.#counts(name, pass)) this.#circuits.delete(name);
      },
      onFailure: () => this.#counts(name, pass) && this.#addFault(name),
      onAbandon: () => {
        const circuit = this.#circuits.get(name);
        if (circuit?.trial?.pass === pass) circuit.trial = null;
      },
    };
    return pass;
  }

  /** Of an open circuit only the trial's word counts: the others were asked before it opened. */
  #counts(name: string, pass: CircuitPermit): boolean {
    const circuit = this.#circuits.get(name);
    return !circuit || circuit.openUntil === null || circuit.trial?.pass === pass;
  }

  /** Answers whether it opened the circuit, for the first time or anew. */
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
