// Moves the process's clock forward. The server's own code takes an injected clock, but the OIDC engine and
// the JOSE library read `Date` themselves, so a test that lets tokens age must move that one.
const RealDate = Date;

/** A clock that tests move; `now` is what the server is given. */
export interface TestClock {
  now(): number;
  /** Moves time forward. @param ms milliseconds. */
  tick(ms: number): void;
  /** Gives the process its own clock back. */
  restore(): void;
}

/** Puts a movable clock in the place of `Date`, at the present time. */
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
      globalThis.Date = RealDate;
    },
  };
}
