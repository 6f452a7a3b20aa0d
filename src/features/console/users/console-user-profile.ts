// The first tab of a user: profile, login identifiers and metadata.

import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { bodyTexts, formFields } from '../../../http/server/body.ts';
import type { RouteDeclaration, RouteDeclarations } from '../../../http/server/router.ts';
import { DATABASE } from '../../../records/connections/connections.ts';
import { callApi } from '../api-calls.ts';
import type { ConsoleSession } from '../console-page.ts';
import { formatObject, mergePatch, parseObject, stampOf } from '../json-text.ts';
import { type Act, declareUserTab, scopesOf, tabForm, tabPage, type UserTab } from './console-user.ts';
import type { UsersDependencies } from './dependencies.ts';
import { requireRight, rightsOf } from './rights.ts';
import type { UserAnswer } from './view.ts';

/** The members that each form can set; others are ignored. */
const NAMES = ['name', 'given_name', 'family_name', 'nickname', 'picture'] as const;
const ADDRESSES = ['email', 'phone_number', 'username'] as const;
const METADATA = ['user_metadata', 'app_metadata'] as const;

interface ProfileModel {
  profile: Record<(typeof NAMES)[number] | (typeof ADDRESSES)[number], string>;
  isVerified: { email: boolean; phone: boolean };
  facts: {
    connection: string | undefined;
    created: FormattedTime | undefined;
    lastLogin: FormattedTime | undefined;
    lastAddress: string | undefined;
    logins: number;
    passwordSet: FormattedTime | undefined;
  };
  hasPassword: boolean;
  /** For administrators who may read it. */
  metadata?: { name: string; text: string; stamp: string }[];
  /** A link to set a password, shown once, and for how long it is valid. */
  link?: string;
  linkHours?: number;
}

export const USERS_PROFILE_PAGE = declareUserTab<ProfileModel>('console/users-profile');

export const PROFILE: UserTab<UsersDependencies, ProfileModel> = {
  tab: 'profile',
  page: USERS_PROFILE_PAGE,
  scopes: scopesOf('profile'),
  model: async (deps, ctx, session, { user, values = {}, fault }) => {
    const rights = rightsOf(session);
    const time = timesOf(deps, ctx);
    const isRetry = fault !== undefined;
    return {
      profile: Object.fromEntries(
        [...NAMES, ...ADDRESSES].map((name) => [name, values[name] ?? user[name] ?? '']),
      ) as ProfileModel['profile'],
      isVerified: { email: user.email_verified === true, phone: user.phone_verified === true },
      facts: {
        connection: user.identities[0]?.connection,
        created: time(user.created_at),
        lastLogin: time(user.last_login),
        lastAddress: user.last_ip,
        logins: user.logins_count ?? 0,
        passwordSet: time(user.last_password_reset),
      },
      hasPassword: hasPassword(user),
      ...(rights.readMetadata && {
        metadata: METADATA.map((name) => ({
          name,
          text: (isRetry ? values[name] : undefined) ?? formatObject(user[name]),
          stamp: stampOf(user[name]),
        })),
      }),
    };
  },
};

/** Reports whether the user has a password in a database of this tenant. */
const hasPassword = ({ identities }: UserAnswer): boolean =>
  identities.some(({ provider }) => provider === DATABASE);

const PATH = '/console/users/:id';
const UPDATE = { scopes: ['update:users'] };

export const profileRoutes: RouteDeclarations<UsersDependencies> = {
  [`GET ${PATH}`]: tabPage(PROFILE),
  [`POST ${PATH}/profile`]: tabForm(PROFILE, UPDATE, async (deps, ctx, session, user) => {
    await patch(deps, ctx, session, user, changesIn(ctx, user, NAMES));
    return { notice: 'console.said.saved' };
  }),
  // Counted as taking the account over: whoever sets an address or a password can log in with it.
  [`POST ${PATH}/login`]: takeOverForm(PROFILE, async (deps, ctx, session, user) => {
    const { verified } = formFields(ctx, 'verified');
    const isVerified = verified === 'yes';
    // An empty address is ignored: without one the user could not log in.
    const filled = Object.entries(changesIn(ctx, user, ADDRESSES)).filter(([, value]) => value !== null);
    const changes: Record<string, unknown> = Object.fromEntries(filled);
    // A new address is unverified unless the form says otherwise.
    const changesVerification = (user.email_verified === true && changes.email === undefined) !== isVerified;
    await patch(deps, ctx, session, user, {
      ...changes,
      ...(changesVerification && { email_verified: isVerified }),
    });
    return { notice: 'console.said.saved' };
  }),
  [`POST ${PATH}/password`]: takeOverForm(PROFILE, async (deps, ctx, session, user) => {
    await patch(deps, ctx, session, user, { password: formFields(ctx, 'password').password });
    return { notice: 'console.users.said.passwordSet' };
  }),
  // Dangerous: applications may decide by metadata what a user may do.
  [`POST ${PATH}/metadata`]: tabForm(
    PROFILE,
    { scopes: ['update:users', 'update:users_app_metadata'], isDangerous: true },
    saveMetadata,
  ),
};

/**
 * Declares a form whose action would allow the administrator to log in as the user.
 * @throws AuthError 403 without that right.
 */
export function takeOverForm<Own extends object>(
  tab: UserTab<UsersDependencies, Own>,
  act: Act<UsersDependencies, Own>,
): RouteDeclaration<UsersDependencies> {
  return tabForm(
    tab,
    { scopes: ['update:users', 'create:user_tickets'], isDangerous: true },
    (deps, ctx, session, user) => {
      requireRight(rightsOf(session).takeOver);
      return act(deps, ctx, session, user);
    },
  );
}

/** Changes a user if there is anything to change. */
async function patch(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  { user_id: id }: UserAnswer,
  body: Record<string, unknown>,
): Promise<void> {
  if (Object.keys(body).length === 0) return;
  await callApi(deps, ctx, session, 'PATCH /users/:id', { params: { id }, body });
}

/** Returns the named fields that differ from the user; null for one that was emptied. */
function changesIn(
  ctx: Context,
  user: UserAnswer,
  names: readonly (keyof UserAnswer)[],
): Record<string, unknown> {
  const texts = bodyTexts(ctx);
  return Object.fromEntries(
    names.flatMap((name) => {
      const text = texts[name]?.trim();
      return text === undefined || text === (user[name] ?? '') ? [] : [[name, text === '' ? null : text]];
    }),
  );
}

async function saveMetadata(
  deps: UsersDependencies,
  ctx: Context,
  session: ConsoleSession,
  user: UserAnswer,
) {
  requireRight(rightsOf(session).updateMetadata);
  const texts = bodyTexts(ctx);
  const body: Record<string, unknown> = {};
  for (const name of METADATA) {
    const text = texts[name];
    if (text === undefined) continue;
    const parsed = parseObject(text);
    if ('fault' in parsed) return { refused: { status: 400, field: name, ...parsed.fault } };
    const change = mergePatch(user[name] ?? {}, parsed.value);
    if (change === undefined) continue;
    // Otherwise the form could overwrite what an application has stored since the form was opened.
    // docs/understand/decisions/console-account.md#metadata-in-the-console-is-edited-as-a-whole-but-only-the-changes-are-sent
    if (texts[`${name}_stamp`] !== stampOf(user[name]))
      return { refused: { status: 409, field: name, key: 'console.users.metadata.changed' } };
    body[name] = change;
  }
  await patch(deps, ctx, session, user, body);
  return { notice: 'console.said.saved' as const };
}
