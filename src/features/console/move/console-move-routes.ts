// /console/move: what of the old tenant is accepted, while a move from it is open.
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { CONSOLE_CLIENT } from '../../../records/users/administrators.ts';
import type { Clock } from '../../../runtime/clock.ts';
import type { Store } from '../../../store/contract.ts';
import { managementEvents } from '../../management/management-declaration.ts';
import { type BridgeState, endBridge, type MoveState, moveState } from '../../move/move-state.ts';
import type { OldDirectory } from '../../move/old-directory.ts';
import { CONSOLE } from '../console-callbacks.ts';
import {
  type ConsolePageDependencies,
  type ConsoleSession,
  consoleForm,
  consolePage,
  redirectAfterForm,
} from '../console-page.ts';
import { declareConsolePage, renderConsole } from '../render.ts';

export interface MovePageDependencies extends ConsolePageDependencies {
  store: Store;
  oldDirectory: Pick<OldDirectory, 'count'>;
  wallClock: Clock;
}

const PATH = `${CONSOLE}/move`;
const READ = 'read:tenant_settings';
const UPDATE = 'update:tenant_settings';

export const moveRoutes: RouteDeclarations<MovePageDependencies> = {
  [`GET ${PATH}` as const]: consolePage<MovePageDependencies>('move', { scopes: [READ] }, showMove),
  [`POST ${PATH}/end` as const]: consoleForm<MovePageDependencies>(
    'move',
    { scopes: [UPDATE], isDangerous: true },
    async (deps, ctx, session) => {
      const { kind, connection } = formFields(ctx, 'kind', 'connection');
      const ended = await endBridge(deps.store, { kind, connection }, deps.wallClock());
      // It was ended already, or closed by a command.
      if (ended !== undefined)
        deps.events.record({
          type: managementEvents.sapi,
          description: 'End what is accepted of another tenant',
          client_id: CONSOLE_CLIENT,
          user_id: session.administrator.userId,
          user_name: session.administrator.email,
          ip: ctx.ip,
          details: {
            request: { channel: 'console', bridge: kind, ...(connection !== '' && { connection }) },
          },
        });
      redirectAfterForm(ctx, PATH, 'console.move.said.ended');
    },
  ),
};

interface ShownBridge {
  kind: BridgeState['kind'];
  connection: string;
  /** Where the old tenant's custom domain is asked. */
  through?: string;
  isOpen: boolean;
  isEnded: boolean;
  /** When it ends or has ended. */
  end: FormattedTime;
  /** What was accepted last. */
  last?: FormattedTime;
  rows: { text: string; all: number; hour: number }[];
  there?: number;
  left?: number;
}

interface MoveModel {
  path: string;
  mayChange: boolean;
  origin: string;
  isOpen: boolean;
  until: FormattedTime;
  bridges: ShownBridge[];
  unreachable?: string;
}

export const MOVE_PAGE = declareConsolePage<MoveModel>('console/move');

async function showMove(deps: MovePageDependencies, ctx: Context, session: ConsoleSession): Promise<void> {
  const { store, wallClock, oldDirectory: directory } = deps;
  const state = await moveState({ store, wallClock, directory });
  if (state === undefined) throw new AuthError(404, 'not_found', 'No move is open.');
  await renderConsole(deps, ctx, session, {
    page: MOVE_PAGE,
    title: 't:console.nav.move',
    model: { path: PATH, mayChange: session.can(UPDATE), ...shownState(state, timesOf(deps, ctx)) },
  });
}

function shownState(
  { origin, is_open: isOpen, until, bridges, unreachable }: MoveState,
  timeOf: (iso: string) => FormattedTime,
): Omit<MoveModel, 'path' | 'mayChange'> {
  return {
    origin,
    isOpen,
    until: timeOf(until),
    bridges: bridges.map((one) => shownBridge(one, timeOf)),
    ...(unreachable !== undefined && { unreachable }),
  };
}

function shownBridge(bridge: BridgeState, timeOf: (iso: string) => FormattedTime): ShownBridge {
  const { kind, connection = '', is_open: isOpen, until, ended_at: ended, last_hour: hour } = bridge;
  const { moved_at: last, users_there: there, left, through } = bridge;
  return {
    kind,
    connection,
    isOpen,
    isEnded: ended !== undefined,
    ...(through !== undefined && { through }),
    end: timeOf(ended ?? until),
    ...(last !== undefined && { last: timeOf(last) }),
    rows: (['moved', 'refused', 'failed'] as const).map((outcome) => ({
      text: `console.move.${outcome === 'refused' && kind === 'passwords' ? 'wrong' : outcome}`,
      all: bridge[outcome],
      hour: hour[outcome],
    })),
    ...(there !== undefined && { there }),
    ...(left !== undefined && { left }),
  };
}
