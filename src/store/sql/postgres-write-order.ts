// The order of this process's own writes: those of one record are made one after another, as they were asked for, and a
// read waits for those that came before it. Changes of one record that wait are made together, as one write.

/** Whatever waits in one turn, while nobody has begun with it. */
interface Turn<T> {
  done: Promise<void>;
  joined: T[] | undefined;
}

export interface WriteOrder<T> {
  /** Does a write of a record when those of the same record that came before are done. */
  take<R>(id: string, work: () => Promise<R>): Promise<R>;
  /** As `take`, together with those that join before it begins. */
  join(id: string, one: T, work: (all: T[]) => Promise<void>): Promise<void>;
  /** When what is under way of a record is done; undefined where nothing is. */
  of(id: string): Promise<void> | undefined;
  /** When all that is under way is done. */
  all(): Promise<unknown>;
}

/** Without a write under way. */
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
