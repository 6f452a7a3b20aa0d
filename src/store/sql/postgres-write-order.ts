// The order of this process's own writes: writes of one record are made one after another, in the order of the calls,
// and a read waits for those that came before it. Waiting changes of one record are made together, as one write.

/** The position of a write; others may join it until it begins. */
interface Turn<T> {
  done: Promise<void>;
  joined: T[] | undefined;
}

export interface WriteOrder<T> {
  /** Makes a write of a record after the earlier writes of the same record. */
  take<R>(id: string, work: () => Promise<R>): Promise<R>;
  /** As `take`, together with the changes that join before it begins. */
  join(id: string, one: T, work: (all: T[]) => Promise<void>): Promise<void>;
  /** Resolves when the last write of a record is done; undefined if none is under way. */
  of(id: string): Promise<void> | undefined;
  /** Resolves when all writes under way are done. */
  all(): Promise<unknown>;
}

/** Returns an order with no write under way. */
export function createWriteOrder<T>(): WriteOrder<T> {
  const last = new Map<string, Turn<T>>();

  function enter<R>(id: string, joined: T[] | undefined, work: () => Promise<R>): Promise<R> {
    const before = last.get(id)?.done;
    const turn: Turn<T> = { done: Promise.resolve(), joined };
    const run = async () => {
      if (before !== undefined) await before;
      turn.joined = undefined;
      return work();
    };
    const result = run();
    turn.done = result.then(leave, leave);
    function leave(): void {
      if (last.get(id) === turn) last.delete(id);
    }
    last.set(id, turn);
    return result;
  }

  return {
    take: (id, work) => enter(id, undefined, work),
    join(id, one, work) {
      const turn = last.get(id);
      if (turn?.joined !== undefined) {
        turn.joined.push(one);
        return turn.done;
      }
      const all = [one];
      return enter(id, all, () => work(all));
    },
    of: (id) => last.get(id)?.done,
    all: () => Promise.all([...last.values()].map(({ done }) => done)),
  };
}
