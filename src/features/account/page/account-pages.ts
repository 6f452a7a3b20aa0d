// The account page, on which users manage their own account.

import type { Context } from 'koa';
import { type FormattedTime, timesOf } from '../../../capabilities/pages/times.ts';
import { declarePage } from '../../../capabilities/pages/views.ts';
import { AuthError } from '../../../http/errors.ts';
import { formFields } from '../../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { Connection } from '../../../records/collections.ts';
import { passkeyOptions } from '../../../records/database-options.ts';
import { SECOND_FACTORS } from '../../../records/users/second-factors.ts';
import type { FactorDependencies, FactorPagesDependencies } from '../../factors/factor.ts';
import { enrollable } from '../../factors/policy.ts';
import { accountEvents } from '../account-declaration.ts';
import type { Actor } from '../actor.ts';
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
import { ACCOUNT } from './account-callbacks.ts';
import { CONFIRM, finishLogin, SECTIONS } from './account-login.ts';
import {
  type AccountPageDependencies,
  back,
  declareAccountPage,
  formRoute,
  pageRoute,
  renderAccount,
  requirePage,
} from './account-page.ts';
import { type ProfileDependencies, profileRoutes, showProfile } from './account-profile.ts';
import { type PageActor, recordAuthentication, startAccountSession } from './account-session.ts';
import { type ApplicationsDependencies, applicationsRoutes } from './applications-page.ts';
import { sendCode, useCode } from './code.ts';
import { type DataDependencies, dataRoutes } from './data-page.ts';
import { editableOf } from './editable.ts';
import { type EmailPageDependencies, emailRoutes } from './email-page.ts';
import { ADD_FACTOR, addFactorRoutes } from './enrollment-pages.ts';
import { type LinkPageDependencies, linkRoutes, showSecond } from './link-page.ts';
import { type NoticeDependencies, notifyUser, recordChange } from './notices.ts';
import { editsPhone, provePhone, sendPhoneCode } from './phone-change.ts';
import { type SessionsPageDependencies, sessionsRoutes } from './sessions-page.ts';

// /account/confirm: confirms by an e-mailed code that the user is present, after a login by a provider that does
// not say whether it asked its user for a proof. Otherwise anybody at an open browser could log in by the
// provider's session.

type Deps = LinkPageDependencies;

const PURPOSE = 'account_confirm';

const confirmRoutes: RouteDeclarations<Deps> = {
  [`GET ${CONFIRM}`]: pageRoute<Deps>('', (deps, ctx, actor) => showConfirm(deps, ctx, actor)),
  [`POST ${CONFIRM}/send`]: formRoute<Deps>('', { act: 'account_page' }, async (deps, ctx, actor) => {
    const to = addressOf(actor);
    if (!actor.isUnproved || to === undefined) return showConfirm(deps, ctx, actor);
    await sendCode(deps, actor, { purpose: PURPOSE, channel: 'email', kind: 'mfa_oob_code', to });
    await showConfirm(deps, ctx, actor, { isSent: true });
  }),
  [`POST ${CONFIRM}`]: formRoute<Deps>('', { act: 'account_page' }, confirm),
};

/** Returns the address that a code is sent to: the user's, if it is verified. */
const addressOf = ({ user }: PageActor) => (user.email_verified ? user.email : undefined);

/** Returns the section that the user wanted to open, from the query or the form. */
function sectionOf(ctx: Context) {
  const { to } = ctx.method === 'GET' ? { to: String(ctx.query.to ?? '') } : formFields(ctx, 'to');
  return SECTIONS.find((one) => one === to) ?? '';
}

interface OwnConfirmModel {
  action: string;
  root: string;
  csrf: string;
  account: string;
  /** The section that is asked for. */
  to: string;
  /** Where the user logged in. */
  provider: string;
  email: string | undefined;
  /** Whether the code was sent. */
  isSent: boolean;
  alert?: string;
}

export const OWN_CONFIRM_PAGE = declarePage<OwnConfirmModel>('own/confirm');

async function showConfirm(
  deps: Deps,
  ctx: Context,
  actor: PageActor,
  { isSent = false, alert }: { isSent?: boolean; alert?: string } = {},
): Promise<void> {
  if (!actor.isUnproved) return back(ctx, sectionOf(ctx));
  const email = addressOf(actor);
  const connection = await deps.config.connection(actor.connection);
  const model = {
    action: isSent ? CONFIRM : `${CONFIRM}/send`,
    root: ACCOUNT,
    csrf: deps.csrf.token(ctx),
    account: actor.formToken,
    to: sectionOf(ctx),
    provider: connection?.display_name ?? actor.connection,
    email,
    isSent,
    ...(alert !== undefined && { alert }),
  };
  const status = alert !== undefined ? 400 : email === undefined ? 403 : 200;
  await deps.views.page(ctx, OWN_CONFIRM_PAGE, model, { status });
}

async function confirm(deps: Deps, ctx: Context, actor: PageActor): Promise<void> {
  if (!actor.isUnproved) return back(ctx, sectionOf(ctx));
  const { code } = formFields(ctx, 'code');
  const sentTo = await useCode(deps, actor, PURPOSE, code);
  // The address may have been changed since.
  const session =
    sentTo !== undefined && sentTo === addressOf(actor) ? await recordAuthentication(deps, ctx) : undefined;
  if (session === undefined)
    return showConfirm(deps, ctx, actor, { isSent: true, alert: 'own.confirm.wrong' });
  if (session.link !== undefined) return showSecond(deps, ctx, session.link, session);
  back(ctx, sectionOf(ctx));
}

// Forms of a phone number: the request, and the code.

interface PhonePageDependencies extends ProfileDependencies, FactorDependencies {}

// docs/understand/decisions/console-account.md#a-phone-number-on-the-account-page-is-no-second-factor
/** The routes of a phone number. Both require a fresh login, so that nobody at an open browser can add a number. */
const phoneRoutes: RouteDeclarations<PhonePageDependencies> = {
  [`POST ${ACCOUNT}/profile/phone`]: formRoute('', { act: 'phone' }, requestPhone),
  [`POST ${ACCOUNT}/profile/phone/code`]: formRoute('', { act: 'phone' }, prove),
};

async function requestPhone(deps: PhonePageDependencies, ctx: Context, actor: PageActor): Promise<void> {
  if (!(await editsPhone(deps, actor.user.id))) return back(ctx, '');
  const { phone } = formFields(ctx, 'phone');
  const phoneAsked = await sendPhoneCode(deps, actor, phone);
  if (phoneAsked !== undefined) return showProfile(deps, ctx, actor, { phoneAsked });
  const faults = { phone: 'own.phone.none' };
  await showProfile(deps, ctx, actor, { values: { phone }, faults, alert: 'own.profile.failed' });
}

async function prove(deps: PhonePageDependencies, ctx: Context, actor: PageActor): Promise<void> {
  if (!(await editsPhone(deps, actor.user.id))) return back(ctx, '');
  const { code, phone } = formFields(ctx, 'code', 'phone');
  const outcome = await provePhone(deps, actor, code);
  if (outcome !== 'set') {
    const faults = { code: outcome === 'taken' ? 'own.phone.taken' : 'own.phone.wrong' };
    return showProfile(deps, ctx, actor, { phoneAsked: phone, faults, alert: 'own.profile.failed' });
  }
  recordChange(deps, ctx, actor, { type: accountEvents.account_changed, description: 'phone number' });
  await notifyUser(deps, ctx, actor.user, 'phone');
  back(ctx, '', 'saved');
}

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
