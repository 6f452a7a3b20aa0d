// What is known of an open move: for `gatehouse move status`, and for the console.
import { OutboundError } from '../../http/outbound/outbound-error.ts';
import type { Frozen } from '../../records/base/record.ts';
import {
  type Bridge,
  type BridgeKind,
  bridgeId,
  isOpen,
  MOVE,
  type MoveCountRecord,
  type MoveOutcome,
  type MoveRecord,
} from '../../records/tenant/move.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Store } from '../../store/contract.ts';
import type { OldDirectory } from './old-directory.ts';
import { OldTenantFault } from './old-requests.ts';

export interface BridgeState extends Bridge, Record<MoveOutcome, number> {
  kind: BridgeKind;
  /** The name of the connection, of passwords. */
  connection?: string;
  /** Where the old tenant's custom domain is asked, of sessions. */
  through?: string;
  is_open: boolean;
  /** When something was accepted last, ISO 8601. */
  moved_at?: string;
  last_hour: Record<MoveOutcome, number>;
  /** How many users the connection has at the old tenant, and about how many of them have no password here yet. */
  users_there?: number;
  left?: number;
}

export interface MoveState extends Bridge {
  origin: string;
  client_id: string;
  is_open: boolean;
  bridges: BridgeState[];
  /** Why the old tenant could not be asked how many users it has. */
  unreachable?: string;
}

interface MoveStateDependencies {
  store: Store;
  wallClock: Clock;
  /** Asked how many users there are; undefined where nobody wants to know. */
  directory: Pick<OldDirectory, 'count'> | undefined;
}

/**
 * Ends a bridge.
 * @param bridge as it was named: `connection` is the name of the connection, of passwords.
 * @returns the bridge as it was; undefined if there is none that has not ended.
 */
export async function endBridge(
  store: Store,
  { kind, connection: name }: { kind: string; connection?: string },
  now: number,
): Promise<Frozen<Bridge> | undefined> {
  const [connection] =
    kind === 'passwords' ? await store.collection('connections').findBy('name', name ?? '') : [];
  const ended_at = new Date(now).toISOString();
  let before: Frozen<Bridge> | undefined;
  const after = await store.collection('moves').update(MOVE, (move) => {
    if (kind === 'sessions' || kind === 'refresh_tokens') {
      before = move[kind];
      return before === undefined ? move : { ...move, [kind]: { ended_at, ...before } };
    }
    const id = connection?.id ?? '';
    before = Object.hasOwn(move.passwords, id) ? move.passwords[id] : undefined;
    if (before === undefined) return move;
    return { ...move, passwords: { ...move.passwords, [id]: { ended_at, ...before } } } as MoveRecord;
  });
  return after === undefined || before?.ended_at !== undefined ? undefined : before;
}

/** Returns undefined if there is no move. */
export async function moveState(deps: MoveStateDependencies): Promise<MoveState | undefined> {
  const { store, wallClock } = deps;
  const move = await store.collection('moves').get(MOVE);
  if (move === undefined) return undefined;
  const now = wallClock();
  const state = (kind: BridgeKind, bridge: Frozen<Bridge>, counts: Counts): BridgeState => ({
    kind,
    ...datesOf(bridge),
    is_open: isOpen(move, bridge, now),
    ...countsIn(counts, now),
  });
  const countsOf = (kind: BridgeKind, connection?: string) =>
    store.collection('moveCounts').get(bridgeId(kind, connection));
  const connections = await Promise.all(
    Object.keys(move.passwords).map((id) => store.collection('connections').get(id)),
  );
  const passwords: BridgeState[] = [];
  let unreachable: string | undefined;
  for (const connection of connections) {
    const bridge = connection && move.passwords[connection.id];
    if (bridge === undefined) continue;
    const one = state('passwords', bridge, await countsOf('passwords', connection?.id));
    const there = await usersThere(deps, move, connection?.name ?? '');
    if (there instanceof Error) unreachable = there.message;
    passwords.push({
      ...one,
      connection: connection?.name ?? '',
      ...(typeof there === 'number' && {
        users_there: there,
        left: Math.max(0, there - bridge.here_before - one.moved),
      }),
    });
  }
  const others = await Promise.all(
    (['sessions', 'refresh_tokens'] as const).map(async (kind) => {
      const bridge = move[kind];
      if (bridge === undefined) return [];
      const { through } = 'through' in bridge ? bridge : {};
      return [{ ...state(kind, bridge, await countsOf(kind)), ...(through && { through: through.host }) }];
    }),
  );
  return {
    origin: move.origin,
    client_id: move.management.client_id,
    ...datesOf(move),
    is_open: isOpen(move, move, now),
    bridges: [...passwords, ...others.flat()],
    ...(unreachable !== undefined && { unreachable }),
  };
}

function datesOf({ opened_at, until, ended_at }: Frozen<Bridge>): Bridge {
  return { opened_at, until, ...(ended_at !== undefined && { ended_at }) };
}

/** Returns the number of users; the fault if the old tenant cannot be asked; undefined if nobody wants to know. */
async function usersThere(
  { directory }: MoveStateDependencies,
  move: Frozen<MoveRecord>,
  connection: string,
): Promise<number | Error | undefined> {
  try {
    return await directory?.count(move, connection);
  } catch (thrown) {
    if (thrown instanceof OldTenantFault || thrown instanceof OutboundError) return thrown;
    throw thrown;
  }
}

type Counts = Frozen<MoveCountRecord> | undefined;

const NONE: Readonly<Record<MoveOutcome, number>> = { moved: 0, refused: 0, failed: 0 };

function countsIn(counts: Counts, now: number) {
  const { moved, refused, failed } = counts ?? NONE;
  const last_hour = { ...NONE };
  for (const [at, numbers] of Object.entries(counts?.recent ?? {}))
    if (Number(at) > now / 1000 - 3600)
      for (const outcome of ['moved', 'refused', 'failed'] as const) last_hour[outcome] += numbers[outcome];
  return {
    moved,
    refused,
    failed,
    ...(counts?.moved_at !== undefined && { moved_at: counts.moved_at }),
    last_hour,
  };
}
