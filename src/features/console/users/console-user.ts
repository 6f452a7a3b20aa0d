// The page of one user: its header and tabs, and the forms of the tabs.

import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import type { FramedPage } from '../../../capabilities/pages/views.ts';
import { bodyTexts } from '../../../http/server/body.ts';
import type { RouteDeclaration } from '../../../http/server/router.ts';
import { callApi } from '../api-calls.ts';
import { type ConsoleSession, consoleForm, consolePage, redirectAfterForm } from '../console-page.ts';
import { type FaultModel, type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { type ConsoleFrame, declareConsolePage, renderConsole } from '../render.ts';
import type { UsersDependencies } from './dependencies.ts';
import { TABS, type Tab, USERS, userPath } from './paths.ts';
import { rightsOf, type UserRights } from './rights.ts';
import { initialOf, nameOf, type UserAnswer } from './view.ts';

/** What the head of a user's page reads, and the forms of its tabs. */
export interface UserFrame extends FaultModel {
  users: string;
  path: string;
  tab: Tab;
  tabs: { name: Tab; url: string }[];
  user: {
    id: string;
    name: string;
    initial: string;
    isBlocked: boolean;
    isUnverified: boolean;
    lockouts: { address?: string }[];
    lastLogin: FormattedTime | undefined;
  };
  rights: UserRights;
  values: Readonly<Record<string, string>>;
}

/** Declares a tab of a user's page. @param template the path of its template below views/pages. */
export const declareUserTab = <Own>(template: string) => declareConsolePage<Own & UserFrame>(template);

/** The data of a tab. It includes the refusal of a form, or a result that is shown only once. */
export interface TabData<Once = object> {
  user: UserAnswer;
  fault?: FormFault | undefined;
  /** The entered values of a refused form. */
  values?: Readonly<Record<string, string>>;
  /** A result that is shown only once. */
  once?: Once;
}

/** A tab of the page. @template D the dependencies of its model. @template Own what its template reads beside the head. */
export interface UserTab<D, Own> {
  tab: Tab;
  page: FramedPage<Own & UserFrame, ConsoleFrame>;
  /** The scopes that the tab requires; all of them are needed. */
  scopes: readonly string[];
  model(deps: D, ctx: Context, session: ConsoleSession, shown: TabData): Promise<Own>;
}

/** The scopes of each tab. The row of tabs only shows those that the administrator may open. */
const SCOPES: Readonly<Record<Tab, readonly string[]>> = {
  profile: ['read:users'],
  identities: ['read:users'],
  factors: ['read:users', 'read:authentication_methods'],
  sessions: ['read:users', 'read:sessions', 'read:refresh_tokens'],
  roles: ['read:users', 'read:roles', 'read:role_members'],
  organizations: ['read:users', 'read:organizations'],
  consents: ['read:users', 'read:grants'],
  devices: ['read:users', 'read:device_credentials'],
  events: ['read:users', 'read:logs_users'],
};

export const scopesOf = (tab: Tab): readonly string[] => SCOPES[tab];

/** Returns the user of the request's path. @throws AuthError 404 */
export async function userOf(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
): Promise<UserAnswer> {
  const answer = await callApi(deps, ctx, session, 'GET /users/:id', { params: { id: idOf(ctx) } });
  return answer.body as UserAnswer;
}

export const idOf = (ctx: Context): string => (ctx.params as Record<string, string>).id ?? '';

export async function showTab<D extends UsersDependencies, Own extends object>(
  deps: D,
  ctx: Context,
  session: ConsoleSession,
  { tab, page, model }: UserTab<D, Own>,
  shown: TabData<Partial<Own>>,
): Promise<void> {
  const { user, fault, values = {}, once } = shown;
  const [tabModel, lockouts] = await Promise.all([
    model(deps, ctx, session, shown),
    lockoutsOf(deps, ctx, session, user),
  ]);
  const name = nameOf(user);
  await renderConsole(deps, ctx, session, {
    page,
    section: 'users',
    title: { text: name },
    model: {
      ...tabModel,
      ...once,
      users: USERS,
      path: userPath(user.user_id),
      tab,
      tabs: TABS.filter((one) => SCOPES[one].every((scope) => session.can(scope))).map((one) => ({
        name: one,
        url: userPath(user.user_id, one),
      })),
      user: {
        id: user.user_id,
        name,
        initial: initialOf(name),
        isBlocked: user.blocked === true,
        isUnverified: user.email !== undefined && user.email_verified !== true,
        lockouts,
        lastLogin: timesOf(deps, ctx)(user.last_login),
      },
      rights: rightsOf(session),
      values,
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

/**
 * Returns the addresses from which the user is locked out after too many wrong passwords; one entry without an
 * address when that holds everywhere.
 */
async function lockoutsOf(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  { user_id: id }: UserAnswer,
): Promise<{ address?: string }[]> {
  const answer = await callApi(deps, ctx, session, 'GET /user-blocks/:id', { params: { id } });
  const { blocked_for } = answer.body as { blocked_for: { ip?: string }[] };
  const addresses = new Set(blocked_for.map(({ ip }) => ip));
  return [...addresses].map((ip) => (ip === undefined ? {} : { address: ip }));
}

/** Returns the entered values without the password, to show them in the form again. */
function enteredValues(ctx: Context): Record<string, string> {
  const { _csrf, password: _, ...texts } = bodyTexts(ctx);
  return texts;
}

export function tabPage<D extends UsersDependencies, Own extends object>(
  tab: UserTab<D, Own>,
): RouteDeclaration<D> {
  return consolePage<D>('users', { scopes: tab.scopes }, async (deps, ctx, session) =>
    showTab(deps, ctx, session, tab, { user: await userOf(deps, ctx, session) }),
  );
}

/** The outcome of a form: a message and where to redirect, a result to show once, or a refusal. */
type FormOutcome<Own> = { notice: string; to?: string } | { once: Partial<Own> } | { refused: FormFault };

/** What a form does. */
export type Act<D, Own> = (
  deps: D,
  ctx: Context,
  session: ConsoleSession,
  user: UserAnswer,
) => Promise<FormOutcome<Own>>;

/** Declares a form of a tab. A refusal of the Management API is shown on the same tab. */
export function tabForm<D extends UsersDependencies, Own extends object>(
  tab: UserTab<D, Own>,
  rules: { scopes: readonly string[]; isDangerous?: boolean },
  act: Act<D, Own>,
): RouteDeclaration<D> {
  const { scopes, isDangerous = false } = rules;
  return consoleForm<D>(
    'users',
    { scopes: [...tab.scopes, ...scopes], isDangerous },
    async (deps, ctx, session) => {
      const user = await userOf(deps, ctx, session);
      let done: FormOutcome<Own>;
      try {
        done = await act(deps, ctx, session, user);
      } catch (thrown) {
        done = { refused: faultOf(thrown) };
      }
      if ('notice' in done)
        return redirectAfterForm(ctx, done.to ?? userPath(user.user_id, tab.tab), done.notice);
      const values = 'refused' in done ? enteredValues(ctx) : {};
      const shown = 'refused' in done ? { user, fault: done.refused, values } : { user, once: done.once };
      await showTab(deps, ctx, session, tab, shown);
    },
  );
}
