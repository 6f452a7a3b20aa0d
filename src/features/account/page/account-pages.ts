// The account page, on which users manage their own account.

import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { formFields } from '../../../http/body.ts';
import { AuthError } from '../../../http/errors.ts';
import { PAGE, type RouteDeclarations } from '../../../http/router.ts';
import type { Connection } from '../../../records/collections.ts';
import { passkeyOptions } from '../../../records/database-options.ts';
import { SECOND_FACTORS } from '../../../records/second-factors.ts';
import type { FactorPagesDependencies } from '../../factors/factor.ts';
import { enrollable } from '../../factors/policy.ts';
import type { Actor } from '../actor.ts';
import { accountEvents } from '../declaration.ts';
import {
  beginMethod,
  confirmMethod,
  listMethods,
  type MethodDependencies,
  NEW_PASSKEY,
  removeMethod,
  renameMethod,
} from '../methods.ts';
import type { MethodView } from '../views.ts';
import { type ApplicationsDependencies, applicationsRoutes } from './applications-page.ts';
import { ACCOUNT } from './callbacks.ts';
import { confirmRoutes } from './confirm-page.ts';
import { type DataDependencies, dataRoutes } from './data-page.ts';
import { editableOf } from './editable.ts';
import { type EmailPageDependencies, emailRoutes } from './email-page.ts';
import { ADD_FACTOR, addFactorRoutes } from './enrollment-pages.ts';
import { type LinkPageDependencies, linkRoutes, showSecond } from './link-page.ts';
import { CONFIRM, finishLogin } from './login.ts';
import { type NoticeDependencies, recordChange } from './notices.ts';
import {
  type AccountPageDependencies,
  back,
  declareAccountPage,
  formRoute,
  pageRoute,
  renderAccount,
  requirePage,
} from './page.ts';
import { phoneRoutes } from './phone-page.ts';
import { profileRoutes } from './profile.ts';
import { type PageActor, startAccountSession } from './session.ts';
import { type SessionsPageDependencies, sessionsRoutes } from './sessions-page.ts';

// /account/security: the user's authentication methods.

interface SecurityDependencies
  extends AccountPageDependencies,
    NoticeDependencies,
    MethodDependencies,
    FactorPagesDependencies {
  passwordLink(actor: Actor, connection: Connection): Promise<string>;
}

const RECOVERY_CODE = SECOND_FACTORS['recovery-code'].method;

const SECTION = '/security';
const PATH = `${ACCOUNT}${SECTION}` as const;

const MAX_NAME_LENGTH = 100;

const securityRoutes: RouteDeclarations<SecurityDependencies> = {
  [`GET ${PATH}`]: pageRoute<SecurityDependencies>(SECTION, (deps, ctx, actor) =>
    showSecurity(deps, ctx, actor),
  ),
  [`POST ${PATH}/password`]: formRoute<SecurityDependencies>(
    SECTION,
    { act: 'password' },
    async (deps, ctx, actor) => {
      const editable = await editableOf(deps, actor.user.id);
      if (editable?.editsPassword !== true) return back(ctx, SECTION);
      ctx.redirect(await deps.passwordLink(actor, editable.connection));
      ctx.status = 303;
    },
  ),
  [`POST ${PATH}/rename`]: formRoute<SecurityDependencies>(
    SECTION,
    { act: 'method_name' },
    async (deps, ctx, actor) => {
      const { method, name } = formFields(ctx, 'method', 'name');
      const newName = name.trim().slice(0, MAX_NAME_LENGTH);
      if (newName === '') return back(ctx, SECTION);
      await ignoreMissing(renameMethod(deps, actor, method, newName));
      back(ctx, SECTION, 'methodRenamed');
    },
  ),
  [`POST ${PATH}/remove`]: formRoute<SecurityDependencies>(
    SECTION,
    { act: 'factor' },
    async (deps, ctx, actor) => {
      await ignoreMissing(removeMethod(deps, actor, formFields(ctx, 'method').method));
      back(ctx, SECTION, 'methodRemoved');
    },
  ),
  [`POST ${PATH}/browsers`]: formRoute<SecurityDependencies>(
    SECTION,
    { act: 'session' },
    async (deps, ctx, actor) => {
      await deps.browsers.forgetAllOf(actor.user.id);
      recordChange(deps, ctx, actor, {
        type: accountEvents.account_changed,
        description: 'remembered browsers forgotten',
      });
      back(ctx, SECTION, 'browsersForgotten');
    },
  ),
  [`POST ${PATH}/recovery-code`]: formRoute<SecurityDependencies>(SECTION, { act: 'factor' }, renewCode),
  [`GET ${PATH}/passkey`]: pageRoute<SecurityDependencies>(SECTION, (deps, ctx, actor) =>
    showNewPasskey(deps, ctx, actor),
  ),
  [`POST ${PATH}/passkey`]: formRoute<SecurityDependencies>(
    SECTION,
    { act: 'passkey', isBound: true },
    makePasskey,
  ),
};

/** Ignores a 404: a method that is gone needs no further change. */
async function ignoreMissing(change: Promise<unknown>): Promise<void> {
  try {
    await change;
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.status !== 404) throw thrown;
  }
}

/** One of the user's methods. */
interface ShownMethod {
  id: string;
  type: string;
  name: string | undefined;
  mayRename: boolean;
  added: FormattedTime;
  used: FormattedTime | undefined;
}

interface OwnSecurityModel {
  editsPassword: boolean;
  takesPasskeys: boolean;
  passkeys: ShownMethod[];
  factors: ShownMethod[];
  /** Whether there is a recovery code. */
  recovery: boolean;
  addFactorUrl: string | undefined;
  /** A new recovery code, shown once. */
  recoveryCode: string | undefined;
}

export const OWN_SECURITY_PAGE = declareAccountPage<OwnSecurityModel>('own/security');

async function showSecurity(
  deps: SecurityDependencies,
  ctx: Context,
  actor: PageActor,
  options: { recoveryCode?: string; alert?: string } = {},
): Promise<void> {
  const { user } = actor;
  const [methods, editable, identities] = await Promise.all([
    listMethods(deps, actor),
    editableOf(deps, user.id),
    deps.users.identitiesOf(user.id),
  ]);
  const connections = await Promise.all(identities.map((one) => deps.config.connection(one.connection)));
  const time = timesOf(deps, ctx);
  const viewOf = ({ id, type, name, created_at, last_auth_at, ...one }: MethodView): ShownMethod => ({
    id,
    type,
    name: [name, one.phone_number, one.email].find((text) => typeof text === 'string'),
    mayRename: type === 'passkey' || type.startsWith('webauthn'),
    added: time(created_at),
    used: time(last_auth_at),
  });
  const model = {
    editsPassword: editable?.editsPassword === true,
    takesPasskeys: connections.some((one) => one !== undefined && passkeyOptions(one) !== undefined),
    passkeys: methods.filter(({ type }) => type === 'passkey').map(viewOf),
    factors: methods
      .filter(({ type, usage }) => usage.includes('secondary') && type !== RECOVERY_CODE)
      .map(viewOf),
    recovery: methods.some(({ type }) => type === RECOVERY_CODE),
    addFactorUrl: enrollable(deps, user).length > 0 ? ADD_FACTOR : undefined,
    recoveryCode: options.recoveryCode,
  };
  const status = options.alert === undefined ? 200 : 400;
  await renderAccount(
    deps,
    ctx,
    actor,
    { page: OWN_SECURITY_PAGE, section: SECTION, model },
    { status, alert: options.alert },
  );
}

/** Shows a new recovery code, which replaces the last one. */
async function renewCode(deps: SecurityDependencies, ctx: Context, actor: PageActor): Promise<void> {
  const { id, authSession, recoveryCode = '' } = await beginMethod(deps, actor, { type: RECOVERY_CODE });
  await confirmMethod(deps, ctx, actor, { id, authSession });
  await showSecurity(deps, ctx, actor, { recoveryCode });
}

interface OwnPasskeyModel {
  action: string;
  session: string;
  /** JSON. */
  options: string;
}

export const OWN_PASSKEY_PAGE = declareAccountPage<OwnPasskeyModel>('own/passkey');

async function showNewPasskey(
  deps: SecurityDependencies,
  ctx: Context,
  actor: PageActor,
  alert?: string,
): Promise<void> {
  // The login is too old, so the form would be refused.
  if (!actor.isFresh) return back(ctx, SECTION);
  const { authSession, options } = await beginMethod(deps, actor, { type: 'passkey' });
  const model = { action: `${PATH}/passkey`, session: authSession, options: JSON.stringify(options) };
  const shown = { page: OWN_PASSKEY_PAGE, section: SECTION, model } as const;
  await renderAccount(deps, ctx, actor, shown, alert === undefined ? {} : { status: 400, alert });
}

async function makePasskey(deps: SecurityDependencies, ctx: Context, actor: PageActor): Promise<void> {
  const { session, code } = formFields(ctx, 'session', 'code');
  try {
    await confirmMethod(deps, ctx, actor, { id: NEW_PASSKEY, authSession: session, response: code });
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.error !== 'invalid_grant') throw thrown;
    return showNewPasskey(deps, ctx, actor, 'passkey.failed');
  }
  back(ctx, SECTION, 'methodAdded');
}

export interface AccountPagesDependencies
  extends ApplicationsDependencies,
    DataDependencies,
    EmailPageDependencies,
    LinkPageDependencies,
    SecurityDependencies,
    SessionsPageDependencies {}

export const accountPages: RouteDeclarations<AccountPagesDependencies> = {
  ...profileRoutes,
  ...emailRoutes,
  ...phoneRoutes,
  ...securityRoutes,
  ...addFactorRoutes,
  ...sessionsRoutes,
  ...applicationsRoutes,
  ...linkRoutes,
  ...confirmRoutes,
  ...dataRoutes,
  [`GET ${ACCOUNT}/callback/:client` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      requirePage(deps);
      const finished = await finishLogin(deps, ctx);
      if (finished === undefined) return;
      const { session, to, link, isFresh } = finished;
      const isUnproved = isFresh && session.login.presence === 'unconfirmed';
      if (link !== undefined && !isUnproved) return showSecond(deps, ctx, link, session);
      await startAccountSession(deps, ctx, { ...session, link });
      ctx.redirect(isUnproved ? `${CONFIRM}?to=${to}` : `${ACCOUNT}${to}`);
    },
  },
};
