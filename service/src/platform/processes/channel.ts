/** A process at the other end of an IPC channel: `process` in a child, a worker of node:cluster in the supervisor. */
interface Peer {
  send?(message: object, callback: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
}

/** Named functions that the other side may call. What they return must be JSON. */
export type Handlers = Record<string, (input: never) => unknown>;

interface Message {
  /** A call and its answer have the same number. */
  call?: number;
  name?: string;
  input?: unknown;
  answer?: number;
  value?: unknown;
  error?: string;
}

interface PendingCall {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** The other side has ended, or does not answer. */
export class PeerLost extends Error {
  override name = "PeerLost";
}

/** Calls between the supervisor and one of its processes. */
export class Channel {
  readonly #peer: Peer;
  readonly #handlers: Handlers;
  readonly #pending = new Map<number, PendingCall>();
  #calls = 0;
  #closedBecause: string | null = null;

  constructor(peer: Peer, handlers: Handlers) {
    this.#peer = peer;
    this.#handlers = handlers;
    peer.on("message", (message) => this.#receive(message as Message));
  }

  /** Rejects with the message of what the handler throws, or with PeerLost. null: waits without a limit. */
  async call<Value>(name: string, input: unknown, timeoutMs: number | null): Promise<Value> {
    if (this.#closedBecause !== null) throw new PeerLost(this.#closedBecause);
    const call = ++this.#calls;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#pending.set(call, { resolve, reject });
    const timer =
      timeoutMs === null
        ? null
        : setTimeout(() => reject(new PeerLost(`no answer within ${timeoutMs} ms`)), timeoutMs);
    this.#send({ call, name, input }, (error) => reject(new PeerLost(error.message)));
    try {
      return (await promise) as Value;
    } finally {
      this.#pending.delete(call);
      if (timer) clearTimeout(timer);
    }
  }

  /** The other side has ended: rejects all calls. */
  close(reason: string): void {
    this.#closedBecause = reason;
    for (const { reject } of this.#pending.values()) reject(new PeerLost(reason));
  }

  #send(message: Message, onError: (error: Error) => void = () => {}): void {
    this.#peer.send?.(message, (error) => {
      if (error) onError(error);
    });
  }

  #receive({ call, name, input, answer, value, error }: Message): void {
    if (call !== undefined) void this.#answer(call, name ?? "", input);
    if (answer === undefined) return;
    const pending = this.#pending.get(answer);
    if (error === undefined) pending?.resolve(value);
    else pending?.reject(new Error(error));
  }

  async #answer(call: number, name: string, input: unknown): Promise<void> {
    try {
      this.#send({ answer: call, value: await this.#handlers[name]?.(input as never) });
    } catch (error) {
      this.#send({ answer: call, error: (error as Error).message });
    }
  }
}
