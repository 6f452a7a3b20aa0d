// Moves a process's clock forward. The server goes by an injected clock, but the OIDC engine and the JOSE library read
// `Date` themselves: whoever lets tokens age must move that one.
const RealDate = Date;

/** A clock that can be moved; `now` is what the server is given. */
export interface TestClock {
  /** Epoch milliseconds. */
  now(): number;
  /** Moves time forward, `Date` of the process with it. @param ms milliseconds. */
  tick(ms: number): void;
  /** Gives the process its own clock back. */
  restore(): void;
}

/** A clock at the present time. */
export function testClock(): TestClock {
  let offset = 0;
  const now = () => RealDate.now() + offset;
  const Moved = new Proxy(RealDate, {
    construct: (target, args) => (args.length === 0 ? new target(now()) : Reflect.construct(target, args)),
    get: (target, property) => (property === 'now' ? now : Reflect.get(target, property)),
  });
  return {
    now,
    tick: (ms) => {
      offset += ms;
      globalThis.Date = Moved;
    },
    restore: () => {
      // Not the one that another clock has put there.
      if (globalThis.Date === Moved) globalThis.Date = RealDate;
    },
  };
}
