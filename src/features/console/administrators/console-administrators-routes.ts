// The pages on which owners manage the administrators.
import type { Context } from 'koa';
import type { Messages } from '../../../capabilities/delivery/delivery-messages.ts';
import { AuthError } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { formFields } from '../../../http/server/body.ts';
import type { RouteDeclarations } from '../../../http/server/router.ts';
import { normalizeEmail } from '../../../records/base/email.ts';
import { ADMINISTRATOR, type AdministratorRole, ROLES } from '../../../records/users/administrators.ts';
import { ADMINISTRATORS_SCOPE, roleRefusal } from '../../management/roles/administrator-roles.ts';
import { CONSOLE } from '../console-callbacks.ts';
import {
  type ConsolePageDependencies,
  type ConsoleSession,
  consoleForm,
  consolePage,
  redirectAfterForm,
} from '../console-page.ts';
import { type DisplayText, declareConsolePage, renderConsole } from '../render.ts';
import {
  changeRole,
  isEmailTaken,
  type MemberFault,
  memberOf,
  removeMember,
} from './console-administrator-members.ts';
import { recordAdministrator } from './events.ts';
import { createLink, LINK_SECONDS, type LinkDependencies, withdrawLink } from './links.ts';
import { type AdministratorsModel, administratorsModel } from './list-model.ts';

export interface AdministratorsDependencies extends ConsolePageDependencies, LinkDependencies {
  messages: Messages;
  /**
   * Whether invitations can be mailed by the operator's own mail server. The tenant's mail server is not used:
   * whoever may change it could read them.
   */
  isMailed: boolean;
  removeUser(userId: string): Promise<void>;
}

type Deps = AdministratorsDependencies;

const SECTION = 'administrators';
const ROOT = `${CONSOLE}/${SECTION}`;
const owners = { scopes: [ADMINISTRATORS_SCOPE] };
const dangerous = { ...owners, isDangerous: true };

export const administratorsRoutes: RouteDeclarations<AdministratorsDependencies> = {
  [`GET ${ROOT}` as const]: consolePage(SECTION, owners, (deps, ctx, session) => show(deps, ctx, session)),
  [`POST ${ROOT}` as const]: consoleForm(SECTION, dangerous, invite),
  [`POST ${ROOT}/:id/role` as const]: consoleForm(SECTION, dangerous, setRole),
  [`POST ${ROOT}/:id/remove` as const]: consoleForm(SECTION, dangerous, remove),
  [`POST ${ROOT}/:id/sessions` as const]: consoleForm(SECTION, dangerous, endSessions),
  [`POST ${ROOT}/:id/factors` as const]: consoleForm(SECTION, dangerous, removeFactors),
  [`POST ${ROOT}/:id/link` as const]: consoleForm(SECTION, dangerous, createPasswordLink),
  [`POST ${ROOT}/links/:id/withdraw` as const]: consoleForm(SECTION, dangerous, withdraw),
};

interface PageExtras {
  /** A link to show this once. */
  link?: { url: string; email: string; isInvitation: boolean };
  alert?: DisplayText;
  values?: { email: string; role: string };
}

interface AdministratorsListModel extends AdministratorsModel {
  /** A link that is shown this once. */
  link?: { url: string; email: string; isInvitation: boolean };
  roles: readonly AdministratorRole[];
  isMailed: boolean;
  values: { email: string; role: string };
}

export const ADMINISTRATORS_LIST_PAGE = declareConsolePage<AdministratorsListModel>(
  'console/administrators-list',
);

async function show(
  deps: Deps,
  ctx: Context,
  session: ConsoleSession,
  extras: PageExtras = {},
): Promise<void> {
  const { alert, ...rest } = extras;
  await renderConsole(deps, ctx, session, {
    page: ADMINISTRATORS_LIST_PAGE,
    section: SECTION,
    title: 't:console.nav.administrators',
    status: alert === undefined ? 200 : 400,
    ...(alert !== undefined && { alert }),
    model: {
      ...(await administratorsModel(deps, ctx, session)),
      roles: ROLES,
      isMailed: deps.isMailed,
      values: { email: '', role: 'viewer' },
      ...rest,
    },
  });
}

async function invite(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const values = formFields(ctx, 'email', 'role');
  const email = normalizeEmail(values.email);
  const role = roleOf(values.role);
  const refuse = (reason: string) =>
    show(deps, ctx, session, { alert: `t:console.administrators.${reason}`, values });
  if (email === undefined) return refuse('badEmail');
  if (await isEmailTaken(deps, email)) return refuse('taken');
  const { userId, name } = session.administrator;
  const url = await createLink(deps, { email, role }, userId);
  if (url === undefined) return refuse('tooMany');
  record(deps, ctx, session, { description: 'invited', email, after: { role } });
  if (!deps.isMailed) return show(deps, ctx, session, { link: { url, email, isInvitation: true } });
  const lifetimeInSeconds = LINK_SECONDS.invitation;
  const notice = {
    to: email,
    url,
    inviter: { name },
    lifetimeInSeconds,
    languages: languagesOf(ctx),
    ip: ctx.ip,
  };
  await deps.messages.post('administrator_invitation', notice, { ttlSeconds: lifetimeInSeconds });
  redirectAfterForm(ctx, ROOT, 'console.administrators.invited');
}

async function setRole(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const { userId, email } = await administratorAt(deps, ctx);
  const role = roleOf(formFields(ctx, 'role').role);
  const result = await changeRole(deps, userId, { role, ownerId: session.administrator.userId });
  if (typeof result === 'string') return showFault(deps, ctx, session, result);
  if (result.before !== role)
    record(deps, ctx, session, {
      description: 'role changed',
      email,
      before: { role: result.before },
      after: { role },
    });
  redirectAfterForm(ctx, ROOT, 'console.said.saved');
}

async function remove(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const { userId, email } = await administratorAt(deps, ctx);
  const result = await removeMember(deps, userId, session.administrator.userId);
  if (typeof result === 'string') return showFault(deps, ctx, session, result);
  await deps.removeUser(userId);
  record(deps, ctx, session, { description: 'removed', email, before: { role: result.before } });
  redirectAfterForm(ctx, ROOT, 'console.said.deleted');
}

async function endSessions(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const { userId, email } = await administratorAt(deps, ctx);
  await deps.challenges.revokeAllOf(userId);
  record(deps, ctx, session, { description: 'sessions ended', email });
  redirectAfterForm(ctx, ROOT, 'console.administrators.ended');
}

async function removeFactors(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const { userId, email } = await administratorAt(deps, ctx);
  await deps.authenticators.removeAllOf(userId);
  record(deps, ctx, session, { description: 'second factors removed', email });
  redirectAfterForm(ctx, ROOT, 'console.said.saved');
}

async function createPasswordLink(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const { userId, email } = await administratorAt(deps, ctx);
  const url = await createLink(deps, { email, user_id: userId }, session.administrator.userId);
  if (url === undefined) return showFault(deps, ctx, session, 'not-allowed');
  record(deps, ctx, session, { description: 'link to a new password made', email });
  await show(deps, ctx, session, { link: { url, email, isInvitation: false } });
}

async function withdraw(deps: Deps, ctx: Context, session: ConsoleSession): Promise<void> {
  const before = await withdrawLink(deps, String(ctx.params.id), session.administrator.userId);
  if (before !== undefined)
    record(deps, ctx, session, { description: 'link withdrawn', email: before.email });
  redirectAfterForm(ctx, ROOT, 'console.said.deleted');
}

/** Returns the administrator of the request's path. @throws AuthError 404 */
async function administratorAt(deps: Deps, ctx: Context): Promise<{ userId: string; email: string }> {
  const userId = `${ADMINISTRATOR}|${String(ctx.params.id)}`;
  const [member, user] = await Promise.all([memberOf(deps, userId), deps.administrators.get(userId)]);
  if (member === undefined) throw new AuthError(404, 'not_found', 'There is no such administrator.');
  return { userId, email: user?.email ?? '' };
}

/** @throws AuthError 400 */
function roleOf(text: string): AdministratorRole {
  const role = ROLES.find((one) => one === text);
  if (role === undefined) throw new AuthError(400, 'invalid_request', 'There is no such role.');
  return role;
}

function showFault(deps: Deps, ctx: Context, session: ConsoleSession, fault: MemberFault): Promise<void> {
  if (fault === 'last-owner')
    return show(deps, ctx, session, { alert: 't:console.administrators.lastOwner' });
  if (fault === 'missing') throw new AuthError(404, 'not_found', 'There is no such administrator.');
  throw roleRefusal();
}

function record(
  deps: Deps,
  ctx: Context,
  { administrator: actor }: ConsoleSession,
  change: Omit<Parameters<typeof recordAdministrator>[2], 'actor'>,
): void {
  recordAdministrator(deps, ctx, { actor, ...change });
}
