// The routes of the passwordless endpoints (docs/wire/passwordless.md).
import { createHmac } from 'node:crypto';
import type { Context } from 'koa';
import { grantTypeOf } from '../../../engine/tokens.ts';
import { bodyObject, requiredField, textsOf } from '../../../http/body-fields.ts';
import { AuthError, oauthShape } from '../../../http/errors.ts';
import { languagesOf } from '../../../http/languages.ts';
import { type RouteDeclarations, withBody } from '../../../http/routes.ts';
import type { Client } from '../../../records/collections.ts';
import type { Store } from '../../../store/contract.ts';
import { sharedSecret } from '../../../store/shared-secret.ts';
import { type PasswordlessConnection, passwordlessConnection } from './connection.ts';
import { OTP_GRANT } from './grant.ts';
import { LINK_PATH, linkTo, startingBrowser, withDefaults } from './link.ts';
import { checkRedirectUri, checkResponseType, linkParameters, linkQuery } from './link-request.ts';
import { handleConfirmation, handleLink, type LinkDependencies } from './link-routes.ts';
import { clientOfOwnPage, type OwnPageDependencies } from './own-page.ts';
import {
  FIELD_ERRORS,
  readStart,
  type StartRequest,
  startAnswer,
  startBody,
  verifyBody,
} from './requests.ts';
import { handleSession, sessionAnswer, sessionBody } from './session-routes.ts';
import { type StartDependencies, start } from './start.ts';
import { check } from './verify.ts';

export interface PasswordlessDependencies extends StartDependencies, LinkDependencies, OwnPageDependencies {
  baseUrl: string;
  store: Pick<Store, 'collection'>;
  /** Authenticates the application that sent the request. @returns its client_id. */
  authenticateClient(ctx: Context): Promise<string>;
  /** Answers as the token endpoint does. */
  tokenEndpoint(ctx: Context, fields: Record<string, string>): Promise<void>;
}

const api = { limit: 'other', cors: 'applications', errors: oauthShape } as const;
const link = { limit: 'other', cors: 'none', errors: 'page' } as const;

/** The routes of passwordless login, except the hosted pages. */
export const passwordlessRoutes: RouteDeclarations<PasswordlessDependencies> = {
  'POST /passwordless/start': {
    ...api,
    summary: 'Send a code or a login link',
    security: ['client'],
    body: startBody,
    answers: { 200: { description: 'Sent; the answer is the same if nothing was sent', body: startAnswer } },
    handle: handleStart,
  },
  'POST /otp/challenge': {
    ...api,
    furtherLimits: ['passwordlessStart'],
    summary: 'Send a code for a login, or a sign-up, in a database connection',
    security: ['client'],
    answers: {
      200: { description: 'Sent; the answer is the same if nothing was sent', body: sessionAnswer },
    },
    ...withBody(sessionBody, handleSession),
  },
  'POST /passwordless/verify': {
    ...api,
    summary: 'Log in with a code, or only check a code (as the browser SDK does)',
    security: ['client'],
    body: verifyBody,
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
  await deps.rateLimits.takeFrom(ctx, 'passwordlessStart');
  const request = readStart(fields);
  const connection = await passwordlessConnection(deps.config, client.client_id, request.connection);
  const address = addressOf(connection, request);
  const link = connection.strategy.sendsLinks && request.send === 'link';
  const params = link ? linkParametersOf(connection, request) : request.authParams;
  if (link || params.redirect_uri !== undefined) checkRedirectUri(client, params);
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

/** `POST /passwordless/verify`: the contract's body logs in; the browser SDK's body only checks a code. */
async function handleVerify(deps: PasswordlessDependencies, ctx: Context): Promise<void> {
  await deps.rateLimits.takeFrom(ctx, 'passwordlessVerify');
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
