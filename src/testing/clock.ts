// Moves the clock of a process forward. The server uses an injected clock, but the OIDC engine and the JOSE library
// read `Date` themselves, so `Date` must move, too, for tokens to expire.
const RealDate = Date;

/** A clock that can be moved; `now` is what the server is given. */
export interface TestClock {
  /** Epoch milliseconds. */
  now(): number;
  /** Moves time forward, and the `Date` of the process with it. @param ms milliseconds. */
  tick(ms: number): void;
  /** Restores the `Date` of the process. */
  restore(): void;
}

/** Makes a clock at the present time. */
export function testClock(): TestClock {
  let offset = 0;
  const now = () => RealDate.now() + offset;
  const ShiftedDate = new Proxy(RealDate, {
    construct: (target, args) => (args.length === 0 ? new target(now()) : Reflect.construct(target, args)),
    get: (target, property) => (property === 'now' ? now : Reflect.get(target, property)),
  });
  return {
    now,
    tick: (ms) => {
      offset += ms;
      globalThis.Date = ShiftedDate;
    },
    restore: () => {
      // Leaves alone a `Date` that another clock has set.
      if (globalThis.Date === ShiftedDate) globalThis.Date = RealDate;
    },
  };
}
