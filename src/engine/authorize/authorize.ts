// GET and POST /authorize, in front of the engine.
import type { IncomingMessage } from 'node:http';
import type { ParsedUrlQuery } from 'node:querystring';
import type { Context } from 'koa';
import type Provider from 'oidc-provider';
import type { Challenges } from '../../capabilities/protection/challenges.ts';
import { AuthError } from '../../http/errors.ts';
import { cspHash } from '../../http/server/application.ts';
import { bodyOf } from '../../http/server/body.ts';
import { newBrowserSecret } from '../../http/server/browser-cookie.ts';
import type { Random } from '../../runtime/secrets.ts';
import { sha256 } from '../../runtime/secrets.ts';
import type { Config } from '../../tenant/config.ts';
import type { Login } from '../../users/login.ts';
import { allowsRedirectUri } from '../admission/admission.ts';
import type { EnterEngine } from '../base/entrance.ts';
import type { ClientDocuments } from '../client/client-documents.ts';
import { unsettledLogin } from '../login/browser-login.ts';
import { withVisitor } from '../session/anonymous-sessions.ts';
import type { Sessions } from '../session/sessions.ts';
import type { GrantStorage } from '../token/token-grants.ts';
import { normalizeRequest } from './authorization-parameters.ts';
import {
  checkRequestSize,
  type ReceivedRequest,
  type RequestReader,
  refusedRequest,
} from './received-request.ts';
import { type RestartDependencies, restartedRequest } from './restarted-request.ts';
import { provedElsewhere } from './silent-login.ts';
import {
  browserSecretOf,
  requestExpired,
  unbindBrowser,
  type WaitingRequest,
  type WaitingRequests,
} from './waiting-requests.ts';

export interface AuthorizationEndpoint {
  /** `GET` and `POST /authorize`: a new request. */
  request(ctx: Context): Promise<void>;
  /** `GET /authorize/<uid>`: continues a request that waited for its user. */
  resume(ctx: Context): Promise<void>;
  /**
   * Answers a silent request whose browser was sent elsewhere ({@link SilentRedirect}).
   * @param login the login that the browser came back with, if any.
   */
  answerSilent(ctx: Context, received: SilentRequest, login: Login | undefined): Promise<void>;
  /**
   * Sends the browser back to the application with an error, in the response mode of the request, for a request
   * that failed before the engine saw it.
   * @param parameters those of the request.
   */
  refuse(ctx: Context, parameters: ParsedUrlQuery, refusal: Refusal): Promise<void>;
}

/** Checks a request before the engine sees it. @throws AuthError for a request that is refused. */
export type CheckRequest = (query: Readonly<ParsedUrlQuery>) => Promise<void>;

/**
 * Returns the URL where the browser of a new waiting request goes instead of our login page: that of the provider
 * that the request names (docs/reference/wire/authorize.md).
 * @returns undefined for our pages.
 */
export type DirectRedirect = (ctx: Context, request: WaitingRequest) => Promise<string | undefined>;

/**
 * A silent request (`prompt=none`) as the endpoint has read it. It is not read again when the browser comes back: a pushed one, or a
 * request object, may be accepted once only.
 */
export interface SilentRequest extends Pick<ReceivedRequest, 'parameters' | 'pushed' | 'isSigned'> {
  /** The hash of the secret that it has in its browser. */
  browser: string;
}

/**
 * Returns the URL where the browser of a silent request without a session goes before it is answered.
 * @param request `params` as the engine has them.
 * @returns undefined where it is answered at once.
 */
export type SilentRedirect = (
  ctx: Context,
  request: { clientId: string; params: Readonly<ParsedUrlQuery>; received: SilentRequest },
) => Promise<string | undefined>;

/** The error that the application gets. */
type Refusal = Pick<AuthError, 'error' | 'error_description'>;

interface AuthorizationDependencies extends ResumeDependencies, RestartDependencies {
  config: Pick<Config, 'client' | 'knownOrganization' | 'resourceServer' | 'settings'>;
  challenges: Pick<Challenges, 'issueTicket' | 'spendTicket'>;
  directRedirect: DirectRedirect;
  silentRedirect: SilentRedirect;
  /** The requests that were answered with `login_required` because the browser has no session. */
  lackingLogin: WeakSet<IncomingMessage>;
  waitingRequests: Pick<WaitingRequests, 'findByLocation'>;
  checkRequest: CheckRequest;
  documents: Pick<ClientDocuments, 'read'>;
  enter: EnterEngine;
  grantStorage: GrantStorage;
  /** The parameters that endpoints of this server understand. */
  endpointParameters: ReadonlySet<string>;
  random: Random;
  requestReader: Pick<RequestReader, 'authorization'>;
  /** The browser secrets of requests, by which the engine's interactions are bound to their browsers. */
  browsers: WeakMap<IncomingMessage, string>;
}

/** Makes the endpoint, with the hosted service's status codes. */
export function authorizationEndpoint({
  checkRequest,
  documents,
  enter,
  grantStorage,
  browsers,
  waitingRequests,
  directRedirect,
  silentRedirect,
  lackingLogin,
  endpointParameters,
  requestReader,
  ...deps
}: AuthorizationDependencies): AuthorizationEndpoint {
  const answer = async (ctx: Context) => {
    await enter(ctx);
    await grantStorage.waitUntilStored(ctx.req);
    // The contract answers 302; the engine's 303 differs only for a POST that must not be repeated.
    // docs/understand/decisions/authorize.md#authorize-answers-with-302
    if (ctx.status === 303) ctx.status = 302;
    if (ctx.response.is('html') && typeof ctx.body === 'string') secureEnginePage(ctx, ctx.body);
  };
  /** @param read reads the request. */
  const begin = async (
    ctx: Context,
    clientId: ParsedUrlQuery[string],
    read: (browser: string) => Promise<ReceivedRequest>,
  ) => {
    // From here on a POST (OIDC Core §3.1.2.1) is handled as the GET that means the same.
    ctx.method = 'GET';
    const secret = newBrowserSecret(deps.random);
    browsers.set(ctx.req, secret);
    const browser = sha256(secret);
    await documents.read(ctx, clientId);
    const resolved = await read(browser);
    checkRequestSize(resolved.parameters);
    const request = await withVisitor(
      deps,
      await normalizeRequest({ ...deps, endpointParameters }, resolved, browser),
      resolved.parameters,
    );
    const restarted = await restartedRequest(deps, ctx, request);
    ctx.query = restarted?.query ?? request;
    await checkRequest(ctx.query);
    // Last, so that a request that is refused leaves the one that waits.
    await restarted?.replace();
    const params = ctx.query;
    await answer(ctx);
    const { parameters, pushed, isSigned } = resolved;
    const received: SilentRequest = {
      parameters,
      browser,
      ...(pushed !== undefined && { pushed }),
      ...(isSigned && { isSigned }),
    };
    return { params, received };
  };
  return {
    request: async (ctx) => {
      const sent = ctx.method === 'POST' ? postedParameters(ctx) : ctx.query;
      checkRequestSize(sent);
      const { params, received } = await begin(ctx, sent.client_id, (browser) =>
        requestReader.authorization(ctx, sent, browser),
      );
      if (lackingLogin.has(ctx.req)) {
        const clientId = String(params.client_id);
        const url = await silentRedirect(ctx, { clientId, params, received });
        if (url !== undefined) leaveFor(ctx, url);
        return;
      }
      const waiting = await waitingRequests.findByLocation(ctx, ctx.response.get('Location'));
      const providerUrl = waiting && (await directRedirect(ctx, waiting));
      if (providerUrl !== undefined) ctx.redirect(providerUrl);
    },
    answerSilent: async (ctx, received, login) => {
      ctx.url = '/authorize';
      if (login !== undefined) provedElsewhere.set(ctx, login);
      const { browser: before, ...read } = received;
      await begin(ctx, read.parameters.client_id, async (browser) => {
        if (read.pushed !== undefined) await deps.pushedRequests.rebind(read.pushed, before, browser);
        return read;
      });
    },
    refuse: async (ctx, parameters, { error, error_description: description }) => {
      ctx.method = 'GET';
      ctx.url = '/authorize';
      const refused = refusedRequest(parameters, error, description);
      ctx.query = await normalizeRequest({ ...deps, endpointParameters }, refused);
      await answer(ctx);
    },
    resume: async (ctx) => {
      // The stored request continues; parameters sent along must not change it.
      ctx.search = '';
      const uid = String(ctx.params.uid);
      browsers.set(ctx.req, await prepareResume(deps, ctx, uid));
      await answer(ctx);
      unbindBrowser(ctx, uid);
    },
  };
}

/** Replaces the answer of the engine by a redirect. */
function leaveFor(ctx: Context, url: string): void {
  ctx.remove('Content-Security-Policy');
  ctx.status = 302;
  ctx.redirect(url);
}

function postedParameters(ctx: Context): ParsedUrlQuery {
  const fields: ParsedUrlQuery = {};
  const body = bodyOf(ctx);
  if (typeof body !== 'object' || body === null) return fields;
  for (const [name, value] of Object.entries(body)) {
    if (typeof value === 'string') fields[name] = value;
    else if (Array.isArray(value) && value.every((one) => typeof one === 'string')) fields[name] = value;
    // OIDC Core §3.1.2.1 knows form bodies only. Some clients send JSON, whose values may be other than strings.
    else throw new AuthError(400, 'invalid_request', `Invalid parameter: ${name.slice(0, 100)}`);
  }
  return fields;
}

/**
 * Content security policy of the engine's form_post page: its one inline script. Its form leads to the application's callback,
 * and from there to wherever that redirects.
 */
function secureEnginePage(ctx: Context, html: string): void {
  if (!html.includes('<form method="post" action="')) return;
  ctx.status = 200;
  ctx.set(
    'Content-Security-Policy',
    `default-src 'none'; script-src ${scriptHash(html)}; frame-ancestors 'none'; base-uri 'none'`,
  );
}

function scriptHash(html: string): string {
  const script = html.split('<script>')[1]?.split('</script>')[0] ?? '';
  return cspHash(script);
}

// Continues a request that waited for its user: only in its own browser, and with the session that the browser has now, which
// another tab may have changed.

interface ResumeDependencies {
  provider: Provider;
  config: Pick<Config, 'knownOrganization' | 'settings'>;
  sessions: Pick<Sessions, 'current' | 'end'>;
}

/**
 * Prepares the request for the engine.
 * @returns the secret that the request has in this browser.
 * @throws AuthError 400 when no such request waits in this browser.
 */
async function prepareResume(
  { provider, config, sessions }: ResumeDependencies,
  ctx: Context,
  uid: string,
): Promise<string> {
  // The engine trusts this cookie, not the path.
  if (ctx.cookies.get(provider.cookieName('resume')) !== uid) throw requestExpired();
  const interaction = await provider.Interaction.find(uid);
  const secret = interaction === undefined ? undefined : browserSecretOf(ctx, interaction);
  if (interaction === undefined || secret === undefined) throw requestExpired();
  await refuseFormerCallback({ provider, config }, interaction.params);
  const current = await sessions.current(ctx);
  const { session, result } = interaction;
  const login = unsettledLogin(result);
  const isOtherUser = login !== undefined && current !== undefined && current.userId !== login.userId;
  const isOtherSession = session?.uid !== undefined && session.uid !== current?.sid;
  if (isOtherUser || isOtherSession) {
    // The session has changed: answers given in the old one without a login no longer count.
    delete (interaction as { session?: unknown }).session;
    if (login === undefined && result !== undefined && !('error' in result)) interaction.result = {};
    await interaction.persist();
  }
  // Another user logs in at this browser. The engine would end the old session by its own logout form, which we do not
  // serve.
  if (isOtherUser) await sessions.end(current.sid, { reason: 'session-revoked', requestsStay: true });
  return secret;
}

/**
 * Refuses a redirect URI that is no longer the application's: it was removed since the request came, or the organization of
 * the request has another name.
 * @throws AuthError 400
 */
async function refuseFormerCallback(
  { provider, config }: Pick<ResumeDependencies, 'provider' | 'config'>,
  { client_id: clientId, redirect_uri: callback, organization }: Readonly<Record<string, unknown>>,
): Promise<void> {
  const client = await provider.Client.find(String(clientId));
  if (client === undefined || !allowsRedirectUri(config, client, String(callback), organization))
    throw requestExpired();
}
