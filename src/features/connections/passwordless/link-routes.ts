// The routes of the link in a passwordless mail (docs/wire/passwordless.md).
import type { Context } from 'koa';
import type { Views } from '../../../capabilities/pages/views.ts';
import type { LoginTickets } from '../../../capabilities/protection/login-tickets.ts';
import type { RateLimits } from '../../../capabilities/protection/rate-limit.ts';
import { requestContextOf } from '../../../engine/action-event.ts';
import type { AuthorizationEndpoint } from '../../../engine/authorize.ts';
import type { Interactions } from '../../../engine/pending-interaction.ts';
import { uidOfState } from '../../../engine/restarted-request.ts';
import { bodyObject, type Fields, requiredField, textField, textsOf } from '../../../http/body-fields.ts';
import { nameBrowser } from '../../../http/browser.ts';
import type { Csrf } from '../../../http/csrf.ts';
import { AuthError } from '../../../http/errors.ts';
import type { Client } from '../../../records/collections.ts';
import type { Random } from '../../../runtime/random.ts';
import type { Config } from '../../../tenant/config.ts';
import type { ProofDependencies } from '../strategy.ts';
import { type PasswordlessConnection, passwordlessConnection } from './connection.ts';
import { authorizationUrl, isExpected, LINK_PATH, withDefaults } from './link.ts';
import { checkRedirectUri, type LinkParameters, linkParameters } from './link-request.ts';
import { FIELD_ERRORS } from './requests.ts';
import { PURPOSE, subjectOf } from './strategy.ts';
import { redeem } from './verify.ts';

export interface LinkDependencies extends ProofDependencies {
  config: Config;
  tickets: LoginTickets;
  rateLimits: RateLimits;
  views: Views;
  csrf: Csrf;
  interactions: Pick<Interactions, 'find'>;
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
  checkRedirectUri(client, params);
  const typedAddress = textField(fields, connection.strategy.kind, FIELD_ERRORS) ?? '';
  const secret = requiredField(fields, 'verification_code', FIELD_ERRORS);
  return { client, connection, address: connection.strategy.normalize(typedAddress), secret, params };
}

/** `GET /passwordless/verify_redirect`: follows an expected link; otherwise shows a page that asks for confirmation. */
export async function handleLink(deps: LinkDependencies, ctx: Context): Promise<void> {
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
    'passwordless/continue',
    {
      action: LINK_PATH,
      csrf: deps.csrf.token(ctx),
      client: { name: client.name, logo: client.logo_uri },
      fields: Object.entries({ ...fields, client_id: client.client_id }),
      address: link.address,
    },
    { uiLocales: link.params.ui_locales, formsLeave: true },
  );
}

/** `POST /passwordless/verify_redirect`: follows a link that the user has confirmed. */
export async function handleConfirmation(deps: LinkDependencies, ctx: Context): Promise<void> {
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
  if (waiting !== undefined) await deps.interactions.find(ctx, waiting);
  try {
    await deps.rateLimits.takeFrom(ctx, 'passwordlessVerify');
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
