// Passwordless connections: a code or a link by e-mail, a code by SMS.

import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import { declarePage, type ShownClient, shownClient, type Views } from '../../../capabilities/pages/views.ts';
import type { LoginTickets } from '../../../capabilities/protection/login-tickets.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import type { AuthorizationEndpoint } from '../../../engine/authorize/authorize.ts';
import { uidOfState } from '../../../engine/authorize/restarted-request.ts';
import type { WaitingRequests } from '../../../engine/authorize/waiting-requests.ts';
import { requestContextOf } from '../../../engine/login/login-event.ts';
import { feature } from '../../../engine/provider/feature.ts';
import { grantTypeOf } from '../../../engine/token/tokens.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { httpLimits } from '../../../http/limits.ts';
import { bodyObject, type Fields, requiredField, textField, textsOf } from '../../../http/server/body.ts';
import { nameBrowser } from '../../../http/server/browser-cookie.ts';
import type { Csrf } from '../../../http/server/csrf.ts';
import { type RouteDeclarations, route } from '../../../http/server/router.ts';
import type { Client } from '../../../records/collections.ts';
import type { Random } from '../../../runtime/secrets.ts';
import type { Store } from '../../../store/contract.ts';
import { sharedSecret } from '../../../store/shared-secret.ts';
import type { Config } from '../../../tenant/config.ts';
import type { ProofDependencies } from '../strategy.ts';
import { type PasswordlessConnection, passwordlessConnection } from './connection.ts';
import { authorizationUrl, isExpected, LINK_PATH, linkTo, startingBrowser, withDefaults } from './link.ts';
import {
  checkRedirectUri,
  checkResponseType,
  type LinkParameters,
  linkParameters,
  linkQuery,
} from './link-request.ts';
import { passwordlessEvents, passwordlessLimits } from './passwordless-declaration.ts';
import { OTP_GRANT, type PasswordlessGrantDependencies, passwordlessGrant } from './passwordless-grant.ts';
import { type PasswordlessPagesDependencies, passwordlessPages } from './passwordless-hosted.ts';
import { type StartDependencies, start } from './passwordless-start.ts';
import { PURPOSE, subjectOf } from './passwordless-strategy.ts';
import {
  FIELD_ERRORS,
  readStart,
  type StartRequest,
  startAnswer,
  startBody,
  verifyBody,
} from './requests.ts';
import { handleSession, sessionAnswer, sessionBody } from './session-routes.ts';
import { check, redeem } from './verify.ts';

// The routes of the passwordless endpoints (docs/reference/wire/passwordless.md).

// The routes of the link in a passwordless mail (docs/reference/wire/passwordless.md).

interface LinkDependencies extends ProofDependencies {
  config: Config;
  tickets: LoginTickets;
  rateLimits: RateLimits;
  views: Views;
  csrf: Csrf;
  waitingRequests: Pick<WaitingRequests, 'find'>;
  random: Random;
  /** Redirects to the application with an error. */
  refuse: AuthorizationEndpoint['refuse'];
}

/** A link whose parameters were checked; its code is not yet used. */
interface Link {
  client: Client;
  connection: PasswordlessConnection;
  address: string | undefined;
  secret: string;
  params: LinkParameters;
}

async function readLink(deps: LinkDependencies, fields: Fields): Promise<Link> {
  const clientId = requiredField(fields, 'client_id', FIELD_ERRORS);
  const client = await deps.config.client(clientId);
  if (client === undefined) throw new AuthError(400, 'invalid_request', 'Unknown client.');
  const name = requiredField(fields, 'connection', FIELD_ERRORS);
  const connection = await passwordlessConnection(deps.config, clientId, name);
  const params = linkParameters(fields, 'invalid_request');
  await checkRedirectUri(deps.config, client, params);
  const typedAddress = textField(fields, connection.strategy.kind, FIELD_ERRORS) ?? '';
  const secret = requiredField(fields, 'verification_code', FIELD_ERRORS);
  return { client, connection, address: connection.strategy.normalize(typedAddress), secret, params };
}

interface PasswordlessContinueModel {
  action: string;
  csrf: string;
  client: ShownClient;
  fields: [string, string][];
  address: string | undefined;
}

export const PASSWORDLESS_CONTINUE_PAGE = declarePage<PasswordlessContinueModel>('passwordless/continue');

/** `GET /passwordless/verify_redirect`: follows an expected link; otherwise shows a page that asks for confirmation. */
async function handleLink(deps: LinkDependencies, ctx: Context): Promise<void> {
  const link = await readLink(deps, ctx.query);
  const { client, connection, address, secret } = link;
  const subject = subjectOf(client.client_id, connection.record, address ?? '');
  const followedLink = { client, purpose: PURPOSE, subject, secret };

  if (await isExpected(ctx, deps.challenges, followedLink)) {
    return follow(deps, ctx, link);
  }
  const { client_id: _, ...fields } = textsOf(ctx.query);
  await deps.views.page(
    ctx,
    PASSWORDLESS_CONTINUE_PAGE,
    {
      action: LINK_PATH,
      csrf: deps.csrf.token(ctx),
      client: shownClient(client),
      fields: Object.entries({ ...fields, client_id: client.client_id }),
      address: link.address,
    },
    { uiLocales: link.params.ui_locales, formsLeave: true },
  );
}

/** `POST /passwordless/verify_redirect`: follows a link that the user has confirmed. */
async function handleConfirmation(deps: LinkDependencies, ctx: Context): Promise<void> {
  deps.csrf.verify(ctx);
  await follow(deps, ctx, await readLink(deps, bodyObject(ctx, FIELD_ERRORS)));
}

/** Consumes a link and redirects to its authorization request, or to the application with an error. */
async function follow(
  deps: LinkDependencies,
  ctx: Context,
  { client, connection, address, secret, params }: Link,
): Promise<void> {
  ctx.set('Cache-Control', 'no-store');
  // A link of a customized login page continues the request that waits in its browser. Elsewhere nothing is used up.
  const waiting = uidOfState(params.state);
  if (waiting !== undefined) await deps.waitingRequests.find(ctx, waiting);
  try {
    await deps.rateLimits.takeFrom(ctx, passwordlessLimits.passwordlessVerify);
    const caller = { ip: ctx.ip, ...nameBrowser(ctx, deps.random) };
    const { client_id: clientId } = client;
    const asker = requestContextOf(ctx, clientId, params);
    // With an invitation, its address decides at the request that the link leads to.
    const named = params.invitation === undefined ? params.organization : undefined;
    const organization = named ? await deps.config.organization(named) : undefined;
    const login = await redeem(deps, { clientId, connection, address, secret, caller, asker, organization });
    const ticket = await deps.tickets.issue(ctx, login, client.client_id);
    ctx.redirect(authorizationUrl(client, connection, params, ticket));
  } catch (thrown) {
    if (!(thrown instanceof AuthError)) throw thrown;
    const { error, error_description } = thrown;
    const code = error === 'invalid_grant' ? 'unauthorized' : error;
    const request = { ...withDefaults(client, params), client_id: client.client_id };
    await deps.refuse(ctx, request, { error: code, error_description });
  }
}

interface PasswordlessDependencies extends StartDependencies, LinkDependencies, CodePageDependencies {
  baseUrl: string;
  store: Pick<Store, 'collection'>;
  // docs/understand/decisions/clients-keys.md#passwordlessverify-authenticates-confidential-applications
  /** @returns its client_id. */
  authenticateClient(ctx: Context): Promise<string>;
  tokenEndpoint(ctx: Context, fields: Record<string, string>): Promise<void>;
}

const api = { limit: httpLimits.other, cors: 'applications', errors: oauthShape } as const;
const link = { limit: httpLimits.other, cors: 'none', errors: 'page' } as const;

/** The routes of passwordless login, except the hosted pages. */
const passwordlessRoutes: RouteDeclarations<PasswordlessDependencies> = {
  'POST /passwordless/start': {
    ...api,
    summary: 'Send a code or a login link',
    security: ['client'],
    uncheckedBody: startBody,
    answers: { 200: { description: 'Sent; the answer is the same if nothing was sent', body: startAnswer } },
    handle: handleStart,
  },
  'POST /otp/challenge': route({
    ...api,
    furtherLimits: [passwordlessLimits.passwordlessStart],
    summary: 'Send a code for a login, or a sign-up, in a database connection',
    security: ['client'],
    answers: {
      200: { description: 'Sent; the answer is the same if nothing was sent', body: sessionAnswer },
    },
    body: sessionBody,
    handle: handleSession,
  }),
  'POST /passwordless/verify': {
    ...api,
    summary: 'Log in with a code, or only check a code (as the browser SDK does)',
    security: ['client'],
    uncheckedBody: verifyBody,
    answers: {
      200: 'The tokens, as at the token endpoint; or an empty object if a code was only checked and is right',
    },
    handle: handleVerify,
  },
  [`GET|HEAD ${LINK_PATH}` as const]: {
    ...link,
    summary: 'The address of a login link',
    query: linkQuery,
    answers: {
      302: 'To the authorization request, which continues',
      200: 'A page that asks whether to continue',
    },
    handle: handleLink,
  },
  [`POST ${LINK_PATH}` as const]: { ...link, handle: handleConfirmation },
};

async function handleStart(deps: PasswordlessDependencies, ctx: Context): Promise<void> {
  const fields = bodyObject(ctx, FIELD_ERRORS);
  if (fields.client_id === undefined && ctx.get('Authorization') === '') {
    throw FIELD_ERRORS.missing('client_id');
  }
  const pageClient = await clientOfOwnPage(deps, ctx, fields);
  const client = pageClient ?? (await authenticateApplication(deps, ctx));
  await deps.rateLimits.takeFrom(ctx, passwordlessLimits.passwordlessStart);
  const request = readStart(fields);
  const connection = await passwordlessConnection(deps.config, client.client_id, request.connection);
  const address = addressOf(connection, request);
  const link = connection.strategy.sendsLinks && request.send === 'link';
  const params = link ? linkParametersOf(connection, request) : request.authParams;
  if (link || params.redirect_uri !== undefined) await checkRedirectUri(deps.config, client, params);
  // The authorization request of a customized login page was checked when it came in.
  if (link && pageClient === undefined) checkResponseType(client, withDefaults(client, params));
  const { organization } = params;
  await start(deps, ctx, {
    client,
    connection,
    address,
    caller: { ip: ctx.ip, ...startingBrowser(ctx, { ...deps, client }) },
    organization: organization === undefined ? undefined : await deps.config.organization(organization),
    languages: languagesOf(ctx),
    ...(link && { link: linkTo(deps.baseUrl, { client, connection, address, params }) }),
  });
  // The `_id` must not reveal whether there is a user, and must be the same from every process.
  // docs/understand/decisions/passwordless-messages.md#_id-in-the-response-of-passwordlessstart-is-a-pseudonym
  const pseudonym = createHmac('sha256', await sharedSecret(deps, 'passwordless-pseudonyms'))
    .update(`${connection.record.name}\n${address}`)
    .digest('hex');
  const _id = pseudonym.slice(0, 24);
  ctx.set('Cache-Control', 'no-store');
  const language = ctx.get('X-Request-Language') || undefined;
  ctx.body = { _id, ...connection.strategy.startResponse(address, language) };
}

/** Returns a link's parameters; those of the request override those of the connection. @throws AuthError 400 */
function linkParametersOf({ authParams = {} }: PasswordlessConnection, request: StartRequest) {
  return linkParameters({ ...authParams, ...request.authParams }, 'bad.authParams');
}

async function authenticateApplication(deps: PasswordlessDependencies, ctx: Context): Promise<Client> {
  const client = await deps.config.client(await deps.authenticateClient(ctx));
  if (client === undefined) throw new AuthError(401, 'invalid_client', 'Unauthorized');
  return client;
}

function addressOf({ strategy }: PasswordlessConnection, request: StartRequest): string {
  const typedAddress = request[strategy.kind];
  if (typedAddress === undefined) throw FIELD_ERRORS.missing(strategy.kind);
  const address = strategy.normalize(typedAddress);
  if (address === undefined) throw strategy.invalid(typedAddress);
  return address;
}

// docs/understand/decisions/passwordless-messages.md#the-older-form-of-passwordlessverify-does-not-use-a-code-up
/** `POST /passwordless/verify`: the contract's body logs in; the browser SDK's body only checks a code. */
async function handleVerify(deps: PasswordlessDependencies, ctx: Context): Promise<void> {
  await deps.rateLimits.takeFrom(ctx, passwordlessLimits.passwordlessVerify);
  const fields = bodyObject(ctx, FIELD_ERRORS);
  const texts = textsOf(fields);
  if (fields.verification_code === undefined) {
    if (fields.grant_type !== 'password') {
      throw new AuthError(400, 'invalid_request', 'grant_type must be password');
    }
    const { connection, password, username, ...rest } = {
      ...texts,
      connection: requiredField(texts, 'connection'),
      username: requiredField(texts, 'username'),
      password: requiredField(texts, 'password'),
    };
    const grantType = grantTypeOf(OTP_GRANT, deps.config.settings().vendor_host);
    return deps.tokenEndpoint(ctx, {
      ...rest,
      grant_type: grantType,
      username,
      realm: connection,
      otp: password,
    });
  }
  const client = await deps.config.client(requiredField(texts, 'client_id'));
  if (client === undefined) throw new AuthError(403, 'unauthorized_client', 'invalid client');
  const connection = await passwordlessConnection(
    deps.config,
    client.client_id,
    requiredField(texts, 'connection'),
  );
  const typedAddress = requiredField(texts, connection.strategy.kind);
  const address = connection.strategy.normalize(typedAddress);
  const secret = requiredField(texts, 'verification_code');
  const caller = { ip: ctx.ip, ...startingBrowser(ctx, { ...deps, client }) };
  await check(deps, { clientId: client.client_id, connection, address, secret, caller });
  ctx.set('Cache-Control', 'no-store');
  ctx.body = {};
}

// Customized login pages request codes with the browser SDK, which has no client secret. The request that waits in this
// browser and its CSRF token authenticate the page instead.
// docs/understand/decisions/login-pages.md#a-customized-login-page-requests-codes-without-its-applications-secret

interface CodePageDependencies {
  config: Config;
  waitingRequests: Pick<WaitingRequests, 'find'>;
  csrf: Csrf;
}

/**
 * Returns the application of the customized login page that sent a request.
 * @param fields of the request; `authParams` contains the page's `state` and `_csrf`.
 * @returns undefined if the request did not come from a customized login page; the client must authenticate then.
 * @throws AuthError 400 or 403 if the page's authorization request no longer waits, or not in this browser.
 */
async function clientOfOwnPage(
  { config, waitingRequests, csrf }: CodePageDependencies,
  ctx: Context,
  fields: Readonly<Record<string, unknown>>,
): Promise<Client | undefined> {
  const { authParams } = fields;
  if (typeof authParams !== 'object' || authParams === null) return undefined;
  const { state, _csrf } = authParams as { state?: unknown; _csrf?: unknown };
  const uid = uidOfState(state);
  if (uid === undefined) return undefined;
  csrf.verify(ctx, _csrf);
  const { clientId } = await waitingRequests.find(ctx, uid);
  return clientId === fields.client_id ? config.client(clientId) : undefined;
}

type PasswordlessFeatureDependencies = PasswordlessDependencies & PasswordlessPagesDependencies;

export const passwordless = feature<PasswordlessFeatureDependencies, PasswordlessGrantDependencies>({
  name: 'passwordless',
  limits: passwordlessLimits,
  events: passwordlessEvents,
  grants: [passwordlessGrant],
  routes: { ...passwordlessRoutes, ...passwordlessPages },
});
