// /console/device: an administrator sees what a program asks for, and approves or refuses. /console/agents/programs: the programs
// that act for administrators, and their end.
// docs/understand/decisions/management-api.md#an-administrator-approves-a-programs-user-code-at-the-console
import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { authenticationMethod } from '../../../records/clients/client-authentication.ts';
import { visibleName } from '../../../records/clients/third-parties.ts';
import { CONSOLE_DIRECTORY } from '../../../records/users/administrators.ts';
import { sha256 } from '../../../runtime/secrets.ts';
import { type CodeDependencies, decideRequest, type WaitingDevice } from '../../grants/device/codes.ts';
import { ACTIVATION_PATH } from '../../grants/device/device-callbacks.ts';
import { type CodeError, findRequest, WRONG_CODE } from '../../grants/device/device-feature.ts';
import { ADMINISTRATORS_SCOPE } from '../../management/roles/administrator-roles.ts';
import { readRegister } from '../administrators/console-administrator-members.ts';
import { administratorEvents } from '../administrators/events.ts';
import { type AgentsTab, agentsTabs } from '../agents/agents-shown.ts';
import { addressOutsideConsole } from '../console-callbacks.ts';
import { goToLogin } from '../console-login.ts';
import {
  type ConsolePageDependencies,
  type ConsoleSession,
  consoleForm,
  consolePage,
  redirectAfterForm,
} from '../console-page.ts';
import { consoleSession } from '../console-session.ts';
import { queryText } from '../query.ts';
import { declareConsolePage, renderConsole } from '../render.ts';
import { APPROVAL, type ApprovedPrograms, type Asked, PROGRAMS, type Program } from './approved-programs.ts';
import { type ScopeArea, scopeWords } from './scope-words.ts';

export interface ProgramsDependencies extends ConsolePageDependencies, CodeDependencies {
  administratorTokens: ApprovedPrograms;
  rateLimits: Pick<RateLimits, 'spend' | 'giveBack'>;
}

type Deps = ProgramsDependencies;

const SECTION = 'agents';

export const programsRoutes: RouteDeclarations<ProgramsDependencies> = {
  [`GET ${APPROVAL}` as const]: consolePage<Deps>(SECTION, { scopes: [] }, showApproval),
  // Which of the two needs a recent login is decided below: a form that waited for one would not show again what it approves.
  [`POST ${APPROVAL}` as const]: consoleForm<Deps>(SECTION, { scopes: [], isDangerous: false }, acceptForm),
  [`GET ${PROGRAMS}` as const]: consolePage<Deps>(SECTION, { scopes: [] }, showPrograms),
  [`POST ${PROGRAMS}` as const]: consoleForm<Deps>(SECTION, { scopes: [], isDangerous: false }, endProgram),
};

async function showApproval(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const typed = queryText(ctx, 'user_code');
  if (typed === '') return askForCode(deps, ctx, session, typed);
  // Before anything is shown, so that what is approved is what was seen.
  if (!session.isFresh) return goToLogin(deps, ctx, { to: ctx.url, previousSession: session });
  const found = await findRequest(deps, ctx, typed);
  if ('alert' in found) return askForCode(deps, ctx, session, typed, found);
  if (found.asksAdministrator === undefined) return ctx.redirect(userPageOf(deps, found));
  await showRequest(deps, ctx, session, found);
}

/** Returns the page of a device that asks a user. */
function userPageOf(deps: Deps, { userCode }: WaitingDevice): string {
  return addressOutsideConsole(deps, `${ACTIVATION_PATH}?${new URLSearchParams({ user_code: userCode })}`);
}

const pageOf = (userCode: string): string => `${APPROVAL}?${new URLSearchParams({ user_code: userCode })}`;

interface AgentsDeviceCodeModel {
  action: string;
  typed: string;
}

export const AGENTS_DEVICE_CODE_PAGE = declareConsolePage<AgentsDeviceCodeModel>(
  'console/agents-device-code',
);

/** The most characters of a typed code that are shown again. */
const MAX_TYPED = 50;

async function askForCode(
  deps: Deps,
  ctx: Context,
  session: ConsoleSession,
  typed: string,
  { alert, status }: Partial<CodeError> = {},
): Promise<void> {
  await renderConsole(deps, ctx, session, {
    page: AGENTS_DEVICE_CODE_PAGE,
    title: 't:console.agents.device',
    model: { action: APPROVAL, typed: typed.slice(0, MAX_TYPED) },
    ...(alert !== undefined && { alert: `t:${alert}` }),
    ...(status !== undefined && { status }),
  });
}

const NOT_ALLOWED: CodeError = { alert: 'console.agents.device.notAllowed', status: 403 };

interface AgentsDeviceModel {
  action: string;
  userCode: string;
  /** Names what the page shows. */
  seen: string;
  client: { name: string; id: string; isPublic: boolean };
  /** The address of the program, where it is not that of the administrator. */
  ip: string | undefined;
  reading: ScopeArea[];
  changing: ScopeArea[];
  /** What it does not get because of the role. */
  beyondRole: ScopeArea[];
  hasNothing: boolean;
  until: FormattedTime;
}

export const AGENTS_DEVICE_PAGE = declareConsolePage<AgentsDeviceModel>('console/agents-device');

async function showRequest(
  deps: Deps,
  ctx: Context,
  session: ConsoleSession,
  found: WaitingDevice,
  alert?: `t:${string}`,
): Promise<void> {
  const asked = await askedBy(deps, session, found);
  if (asked === undefined) return askForCode(deps, ctx, session, '', NOT_ALLOWED);
  const { client, scopes, beyondRole, lifetime } = asked;
  const beyond = scopeWords(beyondRole);
  await renderConsole(deps, ctx, session, {
    page: AGENTS_DEVICE_PAGE,
    title: 't:console.agents.device',
    ...(alert !== undefined && { alert, status: 409 }),
    model: {
      action: APPROVAL,
      userCode: found.userCode,
      seen: seenOf(session, asked),
      client: {
        name: visibleName(client),
        id: client.client_id,
        isPublic: authenticationMethod(client) === 'none',
      },
      ip: found.ip === ctx.ip ? undefined : found.ip,
      ...scopeWords(scopes),
      beyondRole: [...beyond.reading, ...beyond.changing],
      hasNothing: scopes.length === 0,
      until: timesOf(deps, ctx)(deps.wallClock() + lifetime * 1000),
    },
  });
}

function askedBy(
  { administratorTokens }: Deps,
  { administrator }: ConsoleSession,
  { clientId, asksAdministrator = [] }: WaitingDevice,
): Promise<Asked | undefined> {
  return administratorTokens.askedBy({ clientId, scopes: asksAdministrator }, administrator);
}

/** Names what this session was shown. What another session was shown, before a new login, is shown again. */
function seenOf({ token }: ConsoleSession, { client, scopes }: Asked): string {
  return sha256(JSON.stringify([token, client.client_id, client.name, scopes]));
}

async function acceptForm(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const fields = formFields(ctx, 'user_code', 'decision', 'seen');
  const { user_code: typed, decision, seen } = fields;
  const found = await findRequest(deps, ctx, typed);
  if ('alert' in found) return askForCode(deps, ctx, session, typed, found);
  const { userCode } = found;
  // The form in which the code is typed.
  if (decision === '' || found.asksAdministrator === undefined)
    return redirectAfterForm(ctx, pageOf(userCode));
  if (decision !== 'approve') return refuse(deps, ctx, session, found);
  if (!session.isFresh) {
    return goToLogin(deps, ctx, { to: pageOf(userCode), previousSession: session });
  }
  const asked = await askedBy(deps, session, found);
  if (asked === undefined) return askForCode(deps, ctx, session, '', NOT_ALLOWED);
  if (seen !== seenOf(session, asked) || asked.scopes.length === 0)
    return showRequest(deps, ctx, session, found, 't:console.agents.device.changed');
  const isApproved = await deps.administratorTokens.approve(session, asked, async (approved) => {
    // Whatever ended the sessions meanwhile may have looked before the approval was stored.
    const isOpen = (await consoleSession(deps, ctx, SECTION)) !== undefined;
    return isOpen && (await decideRequest(deps, found, { approved }));
  });
  if (!isApproved) return askForCode(deps, ctx, session, '', WRONG_CODE);
  record(deps, ctx, session, 'approved', { client_id: found.clientId, scopes: asked.scopes, ip: found.ip });
  redirectAfterForm(ctx, PROGRAMS, 'console.agents.said.approved');
}

async function refuse(
  deps: Deps,
  ctx: Context,
  session: ConsoleSession,
  found: WaitingDevice,
): Promise<void> {
  if (!(await decideRequest(deps, found, undefined))) return askForCode(deps, ctx, session, '', WRONG_CODE);
  const { clientId: client_id, ip, asksAdministrator: scopes } = found;
  record(deps, ctx, session, 'refused', { client_id, scopes, ip });
  redirectAfterForm(ctx, PROGRAMS, 'console.agents.said.refused');
}

/** Logs what became of a program. @param details `ip` is the address of the program. */
function record(
  { events }: Deps,
  ctx: Context,
  { administrator }: ConsoleSession,
  description: 'approved' | 'refused' | 'ended',
  details: { client_id: string; administrator?: string; scopes?: readonly string[] | undefined; ip?: string },
): void {
  events.record({
    type: administratorEvents.administrator_program,
    client_id: details.client_id,
    connection: CONSOLE_DIRECTORY,
    description,
    user_id: administrator.userId,
    user_name: administrator.email,
    ip: ctx.ip,
    details: { program: details },
  });
}

interface ShownProgram {
  id: string;
  user: string;
  /** The administrator's address, for owners. */
  administrator: string | undefined;
  name: string;
  clientId: string;
  scopes: string;
  issued: FormattedTime;
  until: FormattedTime;
}

interface AgentsProgramsModel {
  tabs: AgentsTab[];
  action: string;
  approvalPath: string;
  programs: ShownProgram[];
  /** Whether those of all administrators are shown. */
  isOfAll: boolean;
}

export const AGENTS_PROGRAMS_PAGE = declareConsolePage<AgentsProgramsModel>('console/agents-programs');

async function showPrograms(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const { administrator, can } = session;
  const isOfAll = can(ADMINISTRATORS_SCOPE);
  const users = isOfAll
    ? (await readRegister(deps)).members.map(({ user_id: id }) => id)
    : [administrator.userId];
  const programs = await Promise.all(users.map((user) => programsOf(deps, ctx, user, isOfAll)));
  await renderConsole(deps, ctx, session, {
    page: AGENTS_PROGRAMS_PAGE,
    title: 't:console.nav.agents',
    model: {
      tabs: agentsTabs(session, 'programs'),
      action: PROGRAMS,
      approvalPath: APPROVAL,
      programs: programs.flat(),
      isOfAll,
    },
  });
}

async function programsOf(deps: Deps, ctx: Context, user: string, isOfAll: boolean): Promise<ShownProgram[]> {
  const programs = await deps.administratorTokens.of(user);
  const administrator = isOfAll && programs.length > 0 ? (await deps.users.get(user))?.email : undefined;
  const time = timesOf(deps, ctx);
  const shown = async ({ id, clientId, scopes, issuedAt, expiresAt }: Program): Promise<ShownProgram> => {
    const client = await deps.config.client(clientId);
    return {
      id,
      user,
      administrator,
      name: client === undefined ? clientId : visibleName(client),
      clientId,
      scopes: scopes.join(' '),
      issued: time(issuedAt),
      until: time(expiresAt * 1000),
    };
  };
  return Promise.all(programs.map(shown));
}

/** Ends a program of the administrator's own; owners may end those of all. */
async function endProgram(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const { user, id } = formFields(ctx, 'user', 'id');
  const isOwn = user === session.administrator.userId;
  const program =
    isOwn || session.can(ADMINISTRATORS_SCOPE)
      ? (await deps.administratorTokens.of(user)).find((one) => one.id === id)
      : undefined;
  if (program === undefined || !(await deps.administratorTokens.end(user, id)))
    throw new AuthError(404, 'not_found', 'There is no such program.');
  const administrator = isOwn ? undefined : ((await deps.users.get(user))?.email ?? user);
  record(deps, ctx, session, 'ended', {
    client_id: program.clientId,
    ...(administrator !== undefined && { administrator }),
  });
  redirectAfterForm(ctx, PROGRAMS, 'console.agents.said.ended');
}
