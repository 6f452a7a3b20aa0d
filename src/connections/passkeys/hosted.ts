// The hosted pages of passkeys: login with one, and the offer to create one.
import type { Context } from 'koa';
import type { Messages } from '../../delivery/messages.ts';
import { sendMethodNotice } from '../../delivery/method-notice.ts';
import { requestExpired } from '../../engine/pending-interaction.ts';
import { OFFER_STEP } from '../../flow/finish.ts';
import { waitsForLogin } from '../../flow/next.ts';
import {
  acceptsConnection,
  openRequestPage,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
} from '../../flow/request-page.ts';
import type { ShowNext } from '../../flow/routes.ts';
import { formFields } from '../../http/body-fields.ts';
import { PAGE, type RouteDeclarations } from '../../http/routes.ts';
import type { RateLimits } from '../../protection/rate-limit.ts';
import { passkeyOptions } from '../../records/database-options.ts';
import type { Events } from '../../tenant/events.ts';
import type { Login } from '../../users/login.ts';
import type { Users } from '../../users/users.ts';
import {
  creationOptions,
  type Registration,
  readAssertion,
  readRegistration,
  verifyRegistration,
} from '../../webauthn/ceremonies.ts';
import { customOrigin, ownRelyingParty } from '../../webauthn/relying-party.ts';
import type { PasswordFormDependencies } from '../database/form-dependencies.ts';
import { renderLogin } from '../database/hosted.ts';
import { usableConnections } from '../resolve.ts';
import { type EnrollmentDependencies, FROM_ELSEWHERE, LATER, LATER_MS, mayEnroll } from './enrollment.ts';
import { provedNow } from './grant.ts';
import { PASSKEY_STEP } from './offer.ts';
import {
  endPasskey,
  keepPasskey,
  type PasskeyDependencies,
  passkeyRegistration,
  usePasskey,
} from './passkeys.ts';
import { beginSession, endSession } from './session.ts';

export interface PasskeyPagesDependencies
  extends PasswordFormDependencies,
    PasskeyDependencies,
    EnrollmentDependencies {
  events: Pick<Events, 'record'>;
  messages: Pick<Messages, 'post'>;
  rateLimits: Pick<RateLimits, 'spend'>;
  showNext: ShowNext;
  users: Users;
}

const OFFER = `/u/:uid/${OFFER_STEP}` as const;

export const passkeyPages: RouteDeclarations<PasskeyPagesDependencies> = {
  [`POST /u/:uid/${PASSKEY_STEP}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      deps.csrf.verify(ctx);
      if (!waitsForLogin(page.pending)) return deps.showNext(ctx, page);
      await logIn(deps, ctx, page);
    },
  },
  [`GET ${OFFER}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      if (offeredTo(page) === undefined) return ctx.redirect(`/u/${page.pending.uid}`);
      await showOffer(deps, ctx, page);
    },
  },
  [`POST ${OFFER}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      deps.csrf.verify(ctx);
      const login = offeredTo(page);
      if (login === undefined) return ctx.redirect(`/u/${page.pending.uid}`);
      const { decision } = formFields(ctx, 'decision');
      if (decision !== 'later') return enroll(deps, ctx, page, login);
      ctx.cookies.set(LATER, '1', {
        maxAge: LATER_MS,
        httpOnly: true,
        secure: true,
        sameSite: 'lax',
        path: '/u/',
      });
      await completeLogin(deps, ctx, login);
    },
  },
};

/** Logs in with a passkey of any connection that the request allows. */
async function logIn(deps: PasskeyPagesDependencies, ctx: Context, page: RequestPage): Promise<void> {
  const { pending } = page;
  const { code, session: authSession } = formFields(ctx, 'code', 'session');
  const ended = await endSession(deps, authSession, pending.clientId);
  if (ended?.session.request !== pending.uid) return deps.showNext(ctx, page);
  const usable = await usableConnections(deps.config, pending.clientId, pending.params.organization);
  const taken = usable.filter(
    ({ connection }) => acceptsConnection(pending, connection) && passkeyOptions(connection) !== undefined,
  );
  const answered = readAssertion(code);
  const used =
    answered && (await usePasskey(deps, ownRelyingParty(deps, ended.session.at), answered, ended.challenge));
  const connection = taken.find(({ connection: { name } }) => name === used?.passkey.connection)?.connection;
  if (answered === undefined || used === undefined || connection === undefined)
    return showAgain(deps, ctx, page, ended.session.connection);
  const { user, credentialVersion } = used;
  const login = {
    userId: user.id,
    credentialVersion,
    connection: connection.name,
    ip: ctx.ip,
    ...provedNow(deps),
  };
  ctx.state[FROM_ELSEWHERE] = answered.authenticatorAttachment === 'cross-platform';
  await deps.finish.login(ctx, pending, login);
}

async function showAgain(
  deps: PasskeyPagesDependencies,
  ctx: Context,
  page: RequestPage,
  name: string,
): Promise<void> {
  const { client_id: clientId } = page.client;
  deps.events.record({
    type: 'fp',
    client_id: clientId,
    connection: name,
    ip: ctx.ip,
    description: 'passkey',
  });
  const connection = await deps.config.connection(name);
  if (connection === undefined) return deps.showNext(ctx, page);
  await renderLogin(deps, ctx, page, connection, { username: '', alert: 'passkey.wrong' }, 400);
}

/** Returns the login that waits only for the user's answer to the offer. */
function offeredTo({ pending }: RequestPage): Login | undefined {
  return pending.offer?.isAnswered === false && waitsForLogin(pending) ? pending.offer.login : undefined;
}

/** Returns the registration of a new passkey. One for this device excludes the passkeys that the user has already. */
async function registrationFor(
  { users, store }: PasskeyPagesDependencies,
  userId: string,
  { challenge, isLocal }: { challenge: string; isLocal: boolean },
): Promise<Registration> {
  const user = await users.get(userId);
  if (user === undefined) throw requestExpired();
  const own = isLocal ? await store.collection('passkeys').findBy('user', userId) : [];
  const registration = passkeyRegistration(challenge, userId, user.email ?? user.username ?? user.id, own);
  return isLocal ? { ...registration, attachment: 'platform' } : registration;
}

async function showOffer(
  deps: PasskeyPagesDependencies,
  ctx: Context,
  page: RequestPage,
  alert?: string,
): Promise<void> {
  const { pending } = page;
  const login = offeredTo(page);
  if (login === undefined) throw requestExpired();
  const { clientId, uid: request } = pending;
  const at = customOrigin(ctx, deps);
  const { authSession, challenge } = await beginSession(deps, {
    clientId,
    connection: login.connection,
    request,
    at,
  });
  const isLocal = pending.offer?.isLocal === true;
  const registration = await registrationFor(deps, login.userId, { challenge, isLocal });
  const options = creationOptions(ownRelyingParty(deps, at), registration);
  const model = { options: JSON.stringify(options), session: authSession, isLocal, ...(alert && { alert }) };
  await renderPage(
    deps,
    ctx,
    page,
    'login/passkey',
    { ...pageModel(page, OFFER_STEP), ...model },
    alert === undefined ? 200 : 400,
  );
}

/** Stores a new passkey. Whether the user may create one is checked again, as time has passed since the offer. */
async function enroll(
  deps: PasskeyPagesDependencies,
  ctx: Context,
  page: RequestPage,
  login: Login,
): Promise<void> {
  const { code, session: authSession } = formFields(ctx, 'code', 'session');
  const { userId, connection } = login;
  const ended = await endSession(deps, authSession, page.pending.clientId);
  const answered = readRegistration(code);
  if (ended?.session.request !== page.pending.uid || answered === undefined)
    return showOffer(deps, ctx, page, 'passkey.failed');
  const isLocal = page.pending.offer?.isLocal === true;
  const registration = await registrationFor(deps, userId, { challenge: ended.challenge, isLocal });
  const party = ownRelyingParty(deps, ended.session.at);
  const credential = await verifyRegistration(party, answered, registration);
  const isSame = async () => (await deps.users.credentialVersion(userId)) === login.credentialVersion;
  const owner = { user_id: userId, connection, userAgent: ctx.get('User-Agent'), registration, party };
  if (credential === undefined || !(await mayEnroll(deps, login, isLocal)) || !(await isSame()))
    return showOffer(deps, ctx, page, 'passkey.failed');
  if (!(await keepPasskey(deps, credential, owner))) return showOffer(deps, ctx, page, 'passkey.failed');
  // A password reset removes passkeys. One that ran between the check and the write above did not see this passkey.
  if (!(await isSame())) await endPasskey(deps, credential);
  else await tellOwner(deps, ctx, page, login);
  await completeLogin(deps, ctx, login);
}

/** Records a new passkey and mails the user: somebody who knows the password may have created it. */
async function tellOwner(
  deps: PasskeyPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { userId, connection }: Login,
): Promise<void> {
  const { client: application } = page;
  const client_id = application.client_id;
  deps.events.record({ type: 'passkey_enrolled', user_id: userId, connection, client_id, ip: ctx.ip });
  const user = await deps.users.get(userId);
  if (user === undefined) return;
  const languages = requestLanguages(ctx, page);
  await sendMethodNotice(deps, 'method_added', {
    user,
    application,
    languages,
    ip: ctx.ip,
    method: 'passkey',
  });
}

/** Completes the login, with the checks that apply to every login. */
async function completeLogin(deps: PasskeyPagesDependencies, ctx: Context, login: Login): Promise<void> {
  await deps.interactions.storeOffer(ctx, { login, isAnswered: true });
  await deps.finish.resume(ctx, await deps.interactions.pending(ctx), login);
}
