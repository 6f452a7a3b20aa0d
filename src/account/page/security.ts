// /account/security: the user's authentication methods.
import type { Context } from 'koa';
import type { FactorPagesDependencies } from '../../factors/factor.ts';
import { enrollable } from '../../factors/policy.ts';
import { formFields } from '../../http/body-fields.ts';
import { AuthError } from '../../http/errors.ts';
import type { RouteDeclarations } from '../../http/routes.ts';
import { timesOf } from '../../pages/times.ts';
import type { Connection } from '../../records/collections.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import { SECOND_FACTORS } from '../../records/second-factors.ts';
import type { Actor } from '../actor.ts';
import { beginFactor, verifyFactor } from '../enrollments.ts';
import { listMethods, type MethodDependencies, removeMethod, renameMethod } from '../methods.ts';
import { beginPasskey, verifyPasskey } from '../passkeys.ts';
import type { MethodView } from '../views.ts';
import { ACCOUNT } from './callbacks.ts';
import { ADD_FACTOR } from './enrollment-pages.ts';
import { homeOf } from './home.ts';
import { type NoticeDependencies, recordChange } from './notices.ts';
import { type AccountPageDependencies, back, posted, renderAccount, shown } from './page.ts';
import type { AtAccount } from './session.ts';

export interface SecurityDependencies
  extends AccountPageDependencies,
    NoticeDependencies,
    MethodDependencies,
    FactorPagesDependencies {
  /** Returns a link to the page on which a user sets a new password. */
  passwordLink(actor: Actor, connection: Connection): Promise<string>;
}

const RECOVERY_CODE = SECOND_FACTORS['recovery-code'].method;

const SECTION = '/security';
const PATH = `${ACCOUNT}${SECTION}` as const;

/** Maximum length of the name of a passkey or a security key. */
const LONGEST_NAME = 100;

export const securityRoutes: RouteDeclarations<SecurityDependencies> = {
  [`GET ${PATH}`]: shown<SecurityDependencies>(SECTION, (deps, ctx, here) => showSecurity(deps, ctx, here)),
  [`POST ${PATH}/password`]: posted<SecurityDependencies>(
    SECTION,
    { isSensitive: true },
    async (deps, ctx, here) => {
      const home = await homeOf(deps, here.user.id);
      if (home?.editsPassword !== true) return back(ctx, SECTION);
      ctx.redirect(await deps.passwordLink(here, home.connection));
      ctx.status = 303;
    },
  ),
  [`POST ${PATH}/rename`]: posted<SecurityDependencies>(
    SECTION,
    { isSensitive: false },
    async (deps, ctx, here) => {
      const { method, name } = formFields(ctx, 'method', 'name');
      const wanted = name.trim().slice(0, LONGEST_NAME);
      if (wanted === '') return back(ctx, SECTION);
      await ifThere(renameMethod(deps, here, method, wanted));
      back(ctx, SECTION, 'methodRenamed');
    },
  ),
  [`POST ${PATH}/remove`]: posted<SecurityDependencies>(
    SECTION,
    { isSensitive: true },
    async (deps, ctx, here) => {
      await ifThere(removeMethod(deps, here, formFields(ctx, 'method').method));
      back(ctx, SECTION, 'methodRemoved');
    },
  ),
  [`POST ${PATH}/browsers`]: posted<SecurityDependencies>(
    SECTION,
    { isSensitive: false },
    async (deps, ctx, here) => {
      await deps.browsers.forgetAllOf(here.user.id);
      recordChange(deps, ctx, here, {
        type: 'account_changed',
        description: 'remembered browsers forgotten',
      });
      back(ctx, SECTION, 'browsersForgotten');
    },
  ),
  [`POST ${PATH}/recovery-code`]: posted<SecurityDependencies>(SECTION, { isSensitive: true }, renewCode),
  [`GET ${PATH}/passkey`]: shown<SecurityDependencies>(SECTION, (deps, ctx, here) =>
    showNewPasskey(deps, ctx, here),
  ),
  [`POST ${PATH}/passkey`]: posted<SecurityDependencies>(
    SECTION,
    { isSensitive: true, isBound: true },
    makePasskey,
  ),
};

/** Ignores a 404: a method that is gone needs no further change. */
async function ifThere(done: Promise<unknown>): Promise<void> {
  try {
    await done;
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.status !== 404) throw thrown;
  }
}

async function showSecurity(
  deps: SecurityDependencies,
  ctx: Context,
  here: AtAccount,
  more: { recoveryCode?: string; alert?: string } = {},
): Promise<void> {
  const { user } = here;
  const [methods, home, identities] = await Promise.all([
    listMethods(deps, here),
    homeOf(deps, user.id),
    deps.users.identitiesOf(user.id),
  ]);
  const connections = await Promise.all(identities.map((one) => deps.config.connection(one.connection)));
  const time = timesOf(deps, ctx);
  const viewOf = ({ id, type, name, created_at, last_auth_at, ...one }: MethodView) => ({
    id,
    type,
    name: name ?? one.phone_number ?? one.email,
    mayRename: type === 'passkey' || type.startsWith('webauthn'),
    added: time(created_at),
    used: time(last_auth_at),
  });
  const model = {
    editsPassword: home?.editsPassword === true,
    takesPasskeys: connections.some((one) => one !== undefined && passkeyOptions(one) !== undefined),
    passkeys: methods.filter(({ type }) => type === 'passkey').map(viewOf),
    factors: methods
      .filter(({ type, usage }) => usage.includes('secondary') && type !== RECOVERY_CODE)
      .map(viewOf),
    recovery: methods.some(({ type }) => type === RECOVERY_CODE),
    addFactorUrl: enrollable(deps).length > 0 ? ADD_FACTOR : undefined,
    recoveryCode: more.recoveryCode,
  };
  const status = more.alert === undefined ? 200 : 400;
  await renderAccount(
    deps,
    ctx,
    here,
    { template: 'security', section: SECTION, model },
    { status, alert: more.alert },
  );
}

/** Shows a new recovery code, which replaces the last one. */
async function renewCode(deps: SecurityDependencies, ctx: Context, here: AtAccount): Promise<void> {
  const begun = await beginFactor(deps, here, { type: RECOVERY_CODE });
  await verifyFactor(deps, here, { id: begun.id, authSession: begun.authSession, code: '' });
  await showSecurity(deps, ctx, here, { recoveryCode: begun.recoveryCode ?? '' });
}

async function showNewPasskey(
  deps: SecurityDependencies,
  ctx: Context,
  here: AtAccount,
  alert?: string,
): Promise<void> {
  // The login is too old, so the form would be refused.
  if (!here.isFresh) return back(ctx, SECTION);
  const { authSession, options } = await beginPasskey(deps, here, {});
  const model = { action: `${PATH}/passkey`, session: authSession, options: JSON.stringify(options) };
  const page = { template: 'passkey', section: SECTION, model } as const;
  await renderAccount(deps, ctx, here, page, alert === undefined ? {} : { status: 400, alert });
}

async function makePasskey(deps: SecurityDependencies, ctx: Context, here: AtAccount): Promise<void> {
  const { session, code } = formFields(ctx, 'session', 'code');
  try {
    await verifyPasskey(deps, here, { authSession: session, answered: code });
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.error !== 'invalid_grant') throw thrown;
    return showNewPasskey(deps, ctx, here, 'passkey.failed');
  }
  back(ctx, SECTION, 'methodAdded');
}
