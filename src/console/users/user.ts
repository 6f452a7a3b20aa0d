// The page of one user: its head and tabs, and how its forms come back to it.
import type { Context } from 'koa';
import { bodyTexts } from '../../http/body-fields.ts';
import type { RouteDeclaration } from '../../http/routes.ts';
import { timesOf } from '../../pages/times.ts';
import { ask } from '../ask.ts';
import { type FormFault, faultModel, faultOf } from '../form-fault.ts';
import { type AtConsole, back, consoleForm, consolePage } from '../page.ts';
import { renderConsole } from '../render.ts';
import type { UsersDependencies } from './dependencies.ts';
import { TABS, type Tab, USERS, userPath } from './paths.ts';
import { rightsOf } from './rights.ts';
import { initialOf, nameOf, type UserAnswer } from './view.ts';

/** What a tab is shown with: after a form that was refused, that; what is shown once, where there is something. */
export interface Shown {
  user: UserAnswer;
  fault?: FormFault | undefined;
  /** The fields of a form that is shown again. */
  values?: Readonly<Record<string, string>>;
  /** Of what is told once, and never again. */
  once?: object;
}

/** One tab. @template D what its model is made of. */
export interface UserTab<D> {
  tab: Tab;
  /** Each of them is needed. */
  scopes: readonly string[];
  model(deps: D, ctx: Context, here: AtConsole, shown: Shown): Promise<object>;
}

/** What each tab takes, for the row of tabs: nobody is led to where they are refused. */
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

/** The scopes of a tab. */
export const scopesOf = (tab: Tab): readonly string[] => SCOPES[tab];

/** The user of a path. @throws AuthError 404 */
export async function userOf(deps: UsersDependencies, ctx: Context, here: AtConsole): Promise<UserAnswer> {
  const answer = await ask(deps, ctx, here, 'GET /users/:id', { params: { id: idOf(ctx) } });
  return answer.body as UserAnswer;
}

/** The id of the user of a path. */
export const idOf = (ctx: Context): string => (ctx.params as Record<string, string>).id ?? '';

/** Answers with a tab of a user's page. */
export async function showTab<D extends UsersDependencies>(
  deps: D,
  ctx: Context,
  here: AtConsole,
  { tab, model }: UserTab<D>,
  shown: Shown,
): Promise<void> {
  const { user, fault, values = {}, once } = shown;
  const [own, lockouts] = await Promise.all([
    model(deps, ctx, here, shown),
    lockoutsOf(deps, ctx, here, user),
  ]);
  const name = nameOf(user);
  await renderConsole(deps, ctx, here, {
    template: `console/users-${tab}`,
    section: 'users',
    title: { text: name },
    model: {
      ...own,
      ...once,
      users: USERS,
      path: userPath(user.user_id),
      tab,
      tabs: TABS.filter((one) => SCOPES[one].every((scope) => here.can(scope))).map((one) => ({
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
      rights: rightsOf(here),
      values,
      ...faultModel(fault),
    },
    status: fault?.status ?? 200,
  });
}

/** Where too many wrong passwords have locked a user out. */
async function lockoutsOf(
  deps: UsersDependencies,
  ctx: Context,
  here: AtConsole,
  { user_id: id }: UserAnswer,
): Promise<{ address?: string }[]> {
  const answer = await ask(deps, ctx, here, 'GET /user-blocks/:id', { params: { id } });
  const { blocked_for } = answer.body as { blocked_for: { ip?: string }[] };
  const addresses = new Set(blocked_for.map(({ ip }) => ip));
  return [...addresses].map((ip) => (ip === undefined ? {} : { address: ip }));
}

/** What was typed into a form, to be shown in it again: no password. */
function typedIn(ctx: Context): Record<string, string> {
  const { _csrf, password: _, ...texts } = bodyTexts(ctx);
  return texts;
}

/** The page of a tab. */
export function tabPage<D extends UsersDependencies>(tab: UserTab<D>): RouteDeclaration<D> {
  return consolePage<D>('users', { scopes: tab.scopes }, async (deps, ctx, here) =>
    showTab(deps, ctx, here, tab, { user: await userOf(deps, ctx, here) }),
  );
}

/** What a form of a tab has done: where the browser goes, and what is said there; or what the tab shows once. */
type Done = { said: string; to?: string } | { once: object } | { refused: FormFault };

/** A form of a tab: a refusal of the Management API is told above the same tab. */
export function tabForm<D extends UsersDependencies>(
  tab: UserTab<D>,
  rules: { scopes: readonly string[]; isDangerous?: boolean },
  act: (deps: D, ctx: Context, here: AtConsole, user: UserAnswer) => Promise<Done>,
): RouteDeclaration<D> {
  const { scopes, isDangerous = false } = rules;
  return consoleForm<D>(
    'users',
    { scopes: [...tab.scopes, ...scopes], isDangerous },
    async (deps, ctx, here) => {
      const user = await userOf(deps, ctx, here);
      let done: Done;
      try {
        done = await act(deps, ctx, here, user);
      } catch (thrown) {
        done = { refused: faultOf(thrown) };
      }
      if ('said' in done) return back(ctx, done.to ?? userPath(user.user_id, tab.tab), done.said);
      const values = 'refused' in done ? typedIn(ctx) : {};
      const shown = 'refused' in done ? { user, fault: done.refused, values } : { user, once: done.once };
      await showTab(deps, ctx, here, tab, shown);
    },
  );
}
