// Passkeys (WebAuthn): login and sign-up at database connections.

import type { Context } from 'koa';
import { sendMethodNotice } from '../../../capabilities/delivery/method-notice.ts';
import { declarePage } from '../../../capabilities/pages/views.ts';
import {
  creationOptions,
  type Registration,
  readRegistration,
  verifyRegistration,
} from '../../../capabilities/webauthn/ceremonies.ts';
import { customOrigin, serverRelyingParty } from '../../../capabilities/webauthn/relying-party.ts';
import { requestExpired } from '../../../engine/authorize/waiting-requests.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { formFields } from '../../../http/server/body.ts';
import { PAGE, type RouteDeclarations } from '../../../http/server/router.ts';
import type { Login } from '../../../users/login.ts';
import { OFFER_STEP, waitsForLogin } from '../../flow/finish.ts';
import {
  openRequestPage,
  type PageModel,
  pageModel,
  type RequestPage,
  renderPage,
  requestLanguages,
} from '../../flow/request-page.ts';
import { DECLINED_COOKIE, DECLINED_COOKIE_MS, mayEnroll } from './enrollment.ts';
import { deletePasskey, passkeyRegistration, storePasskey } from './passkeys.ts';
import { passkeyEvents, passkeyLimits } from './passkeys-declaration.ts';
import { type PasskeyGrantDependencies, passkeyGrant } from './passkeys-grant.ts';
import { type PasskeyPagesDependencies, passkeyPages } from './passkeys-hosted.ts';
import { type PasskeyRoutesDependencies, passkeyRoutes } from './passkeys-routes.ts';
import { beginSession, takeSession } from './passkeys-session.ts';

// The page that offers a user to create a passkey, at the end of a login.

const OFFER_PATH = `/u/:uid/${OFFER_STEP}` as const;

const passkeyEnrollmentPages: RouteDeclarations<PasskeyPagesDependencies> = {
  [`GET ${OFFER_PATH}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      if (loginOfOffer(page) === undefined) return ctx.redirect(`/u/${page.waiting.uid}`);
      await showOffer(deps, ctx, page);
    },
  },
  [`POST ${OFFER_PATH}` as const]: {
    ...PAGE,
    handle: async (deps, ctx) => {
      const page = await openRequestPage(deps, ctx);
      deps.csrf.verify(ctx);
      const login = loginOfOffer(page);
      if (login === undefined) return ctx.redirect(`/u/${page.waiting.uid}`);
      const { decision } = formFields(ctx, 'decision');
      if (decision !== 'later') return enroll(deps, ctx, page, login);
      ctx.cookies.set(DECLINED_COOKIE, '1', {
        maxAge: DECLINED_COOKIE_MS,
        httpOnly: true,
        secure: true,
        sameSite: 'lax',
        path: '/u/',
      });
      await completeLogin(deps, ctx, login);
    },
  },
};

/** Returns the login that waits only for the user's answer to the offer. */
function loginOfOffer({ waiting }: RequestPage): Login | undefined {
  return waiting.offer?.isAnswered === false && waitsForLogin(waiting) ? waiting.offer.login : undefined;
}

/** Returns the registration of a new passkey. One for this device excludes the passkeys that the user has already. */
async function registrationFor(
  { users, store }: PasskeyPagesDependencies,
  userId: string,
  { challenge, isLocal }: { challenge: string; isLocal: boolean },
): Promise<Registration> {
  const user = await users.get(userId);
  if (user === undefined) throw requestExpired();
  const passkeysOfUser = isLocal ? await store.collection('passkeys').findBy('user', userId) : [];
  const registration = passkeyRegistration(
    challenge,
    userId,
    user.email ?? user.username ?? user.id,
    passkeysOfUser,
  );
  return isLocal ? { ...registration, attachment: 'platform' } : registration;
}

interface LoginPasskeyModel extends PageModel {
  options: string;
  session: string;
  isLocal: boolean;
}

export const LOGIN_PASSKEY_PAGE = declarePage<LoginPasskeyModel>('login/passkey');

async function showOffer(
  deps: PasskeyPagesDependencies,
  ctx: Context,
  page: RequestPage,
  alert?: string,
): Promise<void> {
  const { waiting } = page;
  const login = loginOfOffer(page);
  if (login === undefined) throw requestExpired();
  const { clientId, uid: request } = waiting;
  const at = customOrigin(ctx);
  const { authSession, challenge } = await beginSession(deps, {
    clientId,
    connection: login.connection,
    request,
    at,
  });
  const isLocal = waiting.offer?.isLocal === true;
  const registration = await registrationFor(deps, login.userId, { challenge, isLocal });
  const options = creationOptions(serverRelyingParty(deps, at), registration);
  const model = { options: JSON.stringify(options), session: authSession, isLocal, ...(alert && { alert }) };
  await renderPage(
    deps,
    ctx,
    page,
    LOGIN_PASSKEY_PAGE,
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
  const ceremony = await takeSession(deps, authSession, page.waiting.clientId);
  const response = readRegistration(code);
  if (ceremony?.session.request !== page.waiting.uid || response === undefined)
    return showOffer(deps, ctx, page, 'passkey.failed');
  const isLocal = page.waiting.offer?.isLocal === true;
  const registration = await registrationFor(deps, userId, { challenge: ceremony.challenge, isLocal });
  const party = serverRelyingParty(deps, ceremony.session.at);
  const credential = await verifyRegistration(party, response, registration);
  const isPasswordUnchanged = async () =>
    (await deps.users.credentialVersion(userId)) === login.credentialVersion;
  const owner = { user_id: userId, connection, userAgent: ctx.get('User-Agent'), registration, party };
  if (credential === undefined || !(await mayEnroll(deps, login, isLocal)) || !(await isPasswordUnchanged()))
    return showOffer(deps, ctx, page, 'passkey.failed');
  if (!(await storePasskey(deps, credential, owner))) return showOffer(deps, ctx, page, 'passkey.failed');
  // A password reset removes passkeys. One that ran between the check and the write above did not see this passkey.
  if (!(await isPasswordUnchanged())) await deletePasskey(deps, credential);
  else await notifyOwner(deps, ctx, page, login);
  await completeLogin(deps, ctx, login);
}

/** Records a new passkey and mails the user: somebody who knows the password may have created it. */
async function notifyOwner(
  deps: PasskeyPagesDependencies,
  ctx: Context,
  page: RequestPage,
  { userId, connection }: Login,
): Promise<void> {
  const { client: application } = page;
  const client_id = application.client_id;
  deps.events.record({
    type: passkeyEvents.passkey_enrolled,
    user_id: userId,
    connection,
    client_id,
    ip: ctx.ip,
  });
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
  await deps.waitingRequests.storeOffer(ctx, { login, isAnswered: true });
  await deps.finish.resume(ctx, await deps.waitingRequests.shown(ctx), login);
}

export const passkeys = feature<
  PasskeyRoutesDependencies & PasskeyPagesDependencies,
  PasskeyGrantDependencies
>({
  name: 'passkeys',
  limits: passkeyLimits,
  events: passkeyEvents,
  grants: [passkeyGrant],
  routes: { ...passkeyRoutes, ...passkeyPages, ...passkeyEnrollmentPages },
  collections: ['passkeys'],
});
