// Counts what becomes of the uses of each bridge, for those who watch a move.
import { thawed } from '../../records/base/record.ts';
import {
  type BridgeKind,
  bridgeId,
  type MoveCountRecord,
  type MoveOutcome,
} from '../../records/tenant/move.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';

/** Counts a use of a bridge; the request does not wait for it. @param connection the id of the connection, of passwords only. */
export type CountMove = (bridge: BridgeKind, outcome: MoveOutcome, connection?: string) => void;

/** The numbers of the last hour are kept by five minutes, seconds. */
const STEP = 300;
const HOUR = 3600;

export function moveCounter(deps: {
  store: Store;
  wallClock: Clock;
  background: Pick<Background, 'run'>;
}): CountMove {
  const { store, wallClock, background } = deps;
  const counts = store.collection('moveCounts');
  return (bridge, outcome, connection) =>
    background.run('the count of a move', async () => {
      const now = wallClock();
      const id = bridgeId(bridge, connection);
      await counts.upsert(id, (current) => counted(id, current && thawed(current), outcome, now));
    });
}

const NONE = { moved: 0, refused: 0, failed: 0 } as const;

function counted(
  id: string,
  before: MoveCountRecord | undefined,
  outcome: MoveOutcome,
  now: number,
): MoveCountRecord {
  const seconds = Math.floor(now / 1000);
  const step = String(seconds - (seconds % STEP));
  const last = before ?? { id, ...NONE, recent: {} };
  const recent = Object.entries(last.recent).filter(([at]) => Number(at) > seconds - HOUR);
  const present = last.recent[step] ?? NONE;
  return {
    ...last,
    [outcome]: last[outcome] + 1,
    ...(outcome === 'moved' && { moved_at: new Date(now).toISOString() }),
    recent: { ...Object.fromEntries(recent), [step]: { ...present, [outcome]: present[outcome] + 1 } },
  };
}
