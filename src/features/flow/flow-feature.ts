// The login in a browser: the pages of a waiting request, and logins at pages of applications.

import type { Context } from 'koa';
import { z } from 'zod';
import type { LoginTickets } from '../../capabilities/protection/login-tickets.ts';
import type { RateLimits } from '../../capabilities/protection/rate-limit.ts';
import { admissionOf } from '../../engine/admission/admission.ts';
import { engineLimits } from '../../engine/base/engine-declaration.ts';
import { feature } from '../../engine/provider/feature.ts';
import type { VendorGrant } from '../../engine/token/tokens.ts';
import { AuthError, oauthShape } from '../../http/errors.ts';
import { httpLimits } from '../../http/limits.ts';
import { optional, required } from '../../http/parameter-schemas.ts';
import { bodyTexts } from '../../http/server/body.ts';
import { browserOf } from '../../http/server/browser-cookie.ts';
import type { RouteDeclarations } from '../../http/server/router.ts';
import { isOriginOf } from '../../records/clients/allowed-urls.ts';
import type { Client } from '../../records/collections.ts';
import type { Random } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { Users } from '../../users/users.ts';
import { actionRedirectRoutes } from './action-redirects.ts';
import { flowEvents, flowLimits } from './flow-declaration.ts';
import { type FlowDependencies, requestRoutes } from './flow-routes.ts';
import { type LanguageDependencies, languageRoutes } from './language-routes.ts';
import { type WidgetDependencies, widgetRoutes } from './widget.ts';

// Cross-origin login: the application's own page takes the credentials, gets a login ticket, and sends the browser to
// /authorize with it (docs/reference/wire/legacy-pages.md).

interface CrossOriginDependencies {
  config: Config;
  users: Users;
  tickets: LoginTickets;
  events: Events;
  rateLimits: RateLimits;
  random: Random;
  hasRealm(clientId: string, realm: string): Promise<boolean>;
  /**
   * The grants accepted as credential types: first factors only, because a ticket starts a login and must not complete the
   * second factor of another one.
   */
  credentialGrants: readonly VendorGrant[];
}

// docs/understand/decisions/login-pages.md#coauthenticate-requires-cross_origin_authentication-true
/** The route that issues a login ticket for credentials. */
const crossOriginRoutes: RouteDeclarations<CrossOriginDependencies> = {
  'POST /co/authenticate': {
    limit: httpLimits.other,
    cors: 'applications',
    errors: oauthShape,
    summary:
      'Get a login ticket for credentials that the user entered on a page of the application (cross-origin login)',
    uncheckedBody: z.object({
      client_id: required(
        'The application; it must allow cross-origin login, and the `Origin` must be its own.',
      ),
      credential_type: required(
        'A grant type of a first factor: a password (realm), or a passwordless code.',
      ),
      username: required('The e-mail address, username or phone number.'),
      password: optional('The password, for a password grant type.'),
      otp: optional('The code, for a passwordless grant type.'),
      realm: optional('The name of a connection, if the credential type needs one.'),
    }),
    answers: {
      200: {
        description: 'The ticket, for `login_ticket` of `/authorize`',
        body: z.object({ login_ticket: z.string(), co_verifier: z.string(), co_id: z.string() }),
      },
    },
    handle,
  },
};

async function handle(deps: CrossOriginDependencies, ctx: Context): Promise<void> {
  try {
    await logIn(deps, ctx);
  } catch (thrown) {
    if (thrown instanceof AuthError) {
      const { client_id: clientId } = bodyTexts(ctx);
      const client = clientId === undefined ? undefined : await deps.config.client(clientId);
      deps.events.record({
        type: flowEvents.fcoa,
        ip: ctx.ip,
        description: thrown.error_description,
        ...(client !== undefined && { client_id: client.client_id }),
      });
    }
    throw thrown;
  }
}

async function logIn(deps: CrossOriginDependencies, ctx: Context): Promise<void> {
  await deps.rateLimits.takeFrom(ctx, flowLimits.coAuthenticate);
  const { client_id: clientId, credential_type: type, ...params } = bodyTexts(ctx);
  const client = clientId === undefined ? undefined : await deps.config.client(clientId);
  if (client === undefined) throw incompleteRequest();
  checkOrigin(client, ctx.get('Origin'));
  const grant = deps.credentialGrants.find(({ grantType }) => grantType === type);
  if (grant === undefined) throw unsupportedType();
  await checkRealm(deps, client, params.realm);
  const { login } = await authenticate(grant, ctx, client, params);
  const { refusal } = await admissionOf(deps.users, login);
  // Refused here, where the page can show it, instead of by an error at the callback.
  if (refusal?.error === 'unauthorized') throw new AuthError(403, 'blocked_user', 'Blocked user');
  const ticket = await deps.tickets.issue(ctx, login, client.client_id);
  deps.events.record({
    type: flowEvents.scoa,
    client_id: client.client_id,
    user_id: login.userId,
    ip: ctx.ip,
  });
  ctx.set('Cache-Control', 'no-store');
  // SDKs store co_verifier under co_id; here the ticket's cookie is what counts.
  ctx.body = {
    login_ticket: ticket,
    co_verifier: deps.random(24).toString('base64url'),
    co_id: deps.random(9).toString('base64url'),
  };
}

/** @throws AuthError 400 when the application has no such connection. */
async function checkRealm(
  { hasRealm }: CrossOriginDependencies,
  client: Client,
  realm: string | undefined,
): Promise<void> {
  if (realm === undefined) return;
  if (await hasRealm(client.client_id, realm)) return;
  throw new AuthError(400, 'invalid_request', `Unknown realm ${realm.slice(0, 100)}.`);
}

async function authenticate(
  grant: VendorGrant,
  ctx: Context,
  { client_id: clientId }: Client,
  params: Record<string, string>,
) {
  try {
    // The request comes from the user's browser, at the application's page.
    const browser = browserOf(ctx);
    // No token is issued here.
    const confirmationFor = async () => ({});
    const request = { clientId, params, ip: ctx.ip, userAddress: ctx.ip, browser, ctx, confirmationFor };
    const result = await (await grant.begin(request)).authenticate();
    if ('login' in result) return result;
  } catch (thrown) {
    if (!(thrown instanceof AuthError) || thrown.error !== 'invalid_grant') throw thrown;
    // The endpoint's own error code for wrong credentials.
    throw new AuthError(403, 'access_denied', thrown.error_description);
  }
  throw unsupportedType();
}

function checkOrigin(client: Client, origin: string): void {
  if (client.cross_origin_authentication !== true) {
    throw new AuthError(401, 'unauthorized_client', 'Cross origin login not allowed.');
  }
  if (isOriginOf(client, origin)) return;
  throw new AuthError(403, 'access_denied', `Origin ${origin.slice(0, 200)} is not allowed.`);
}

function unsupportedType(): AuthError {
  return new AuthError(400, 'unsupported_credential_type', 'Unknown credential type parameter.');
}

function incompleteRequest(): AuthError {
  return new AuthError(
    400,
    'invalid_request',
    'Invalid request body. All and only of client_id, credential_type, username, otp, realm are required.',
  );
}

// The documents by which phones know the tenant's own apps: Apple's associated domains and Android's Digital Asset Links. With
// them an app may have an https callback on our host, which no other app can take (RFC 8252 §7.2), and passkeys of our host.

interface AppLinksDependencies {
  config: Config;
}

const appDocument = {
  limit: engineLimits.discovery,
  cors: 'none',
  errors: oauthShape,
} as const;

const association = {
  ...appDocument,
  summary: 'The iOS apps that may open links of this host and use its passkeys',
  answers: { 200: 'The apps, as Apple defines it' },
  handle: async (deps: AppLinksDependencies, ctx: Context) =>
    sendDocument(ctx, appleAssociation(await ownApps(deps))),
} as const;

/** The documents, at the paths where Apple and Android look. */
const appLinkRoutes: RouteDeclarations<AppLinksDependencies> = {
  'GET|HEAD /apple-app-site-association': association,
  'GET|HEAD /.well-known/apple-app-site-association': association,
  'GET|HEAD /.well-known/assetlinks.json': {
    ...appDocument,
    summary: 'The Android apps that may open links of this host and use its passkeys',
    answers: { 200: 'The apps, as Digital Asset Links' },
    handle: async (deps, ctx) => sendDocument(ctx, assetLinks(await ownApps(deps))),
  },
};

/** Returns the applications whose apps belong to the tenant. A third party's app would get passkeys of our host. */
async function ownApps({ config }: AppLinksDependencies): Promise<Client[]> {
  return (await config.clients()).filter(({ is_first_party }) => is_first_party);
}

function sendDocument(ctx: Context, document: object): void {
  ctx.set('Cache-Control', 'public, max-age=300');
  ctx.type = 'json';
  ctx.body = document;
}

/** An app's callbacks are below `/ios/<bundle>/`, as its SDK makes them, and so are no links of another app. */
function appleAssociation(clients: readonly Client[]): object {
  const apps = clients.flatMap(({ mobile }) => {
    const { team_id: team, app_bundle_identifier: bundle } = mobile?.ios ?? {};
    return team && bundle ? [{ appID: `${team}.${bundle}`, paths: [`/ios/${bundle}/*`] }] : [];
  });
  return {
    applinks: { apps: [], details: apps },
    webcredentials: { apps: [...new Set(apps.map(({ appID }) => appID))] },
  };
}

function assetLinks(clients: readonly Client[]): object[] {
  return clients.flatMap(({ mobile }) => {
    const { app_package_name: name, sha256_cert_fingerprints: fingerprints } = mobile?.android ?? {};
    if (!name || !fingerprints?.length) return [];
    return [
      {
        relation: [
          'delegate_permission/common.handle_all_urls',
          'delegate_permission/common.get_login_creds',
        ],
        target: { namespace: 'android_app', package_name: name, sha256_cert_fingerprints: fingerprints },
      },
    ];
  });
}

interface FlowFeatureDependencies
  extends FlowDependencies,
    CrossOriginDependencies,
    WidgetDependencies,
    AppLinksDependencies,
    LanguageDependencies {}

export const flow = feature<FlowFeatureDependencies>({
  name: 'flow',
  limits: flowLimits,
  events: flowEvents,
  routes: {
    ...requestRoutes,
    ...actionRedirectRoutes,
    ...crossOriginRoutes,
    ...widgetRoutes,
    ...appLinkRoutes,
    ...languageRoutes,
  },
});
