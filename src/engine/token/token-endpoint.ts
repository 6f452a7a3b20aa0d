// /oauth/token and /oauth/revoke in front of the engine: JSON and form bodies, `audience`, and the hosted service's errors
// (docs/reference/wire/token.md).
import type { Context } from 'koa';
import type { KoaContextWithOIDC } from 'oidc-provider';
import type { Signing } from '../../capabilities/signing/signing.ts';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { AuthError, oauthShape } from '../../http/errors.ts';
import { bodyFields, bodyObject } from '../../http/server/body.ts';
import { foreignPage } from '../../http/server/router.ts';
import type { EventType } from '../../records/base/log-events.ts';
import { isOriginOf } from '../../records/clients/allowed-urls.ts';
import { formatName, subjectOf } from '../../records/clients/distinguished-name.ts';
import type { Measures } from '../../runtime/measures.ts';
import type { Config } from '../../tenant/config.ts';
import type { Events } from '../../tenant/events.ts';
import type { MachineOrganizations } from '../admission/admission.ts';
import { exchangeEvents } from '../admission/exchange-context.ts';
import type { SecondFactor } from '../admission/second-factor.ts';
import { engineEvents } from '../base/engine-declaration.ts';
import type { EnterEngine } from '../base/entrance.ts';
import { setParsedBody } from '../base/entrance.ts';
import type { EngineFailures } from '../base/failures.ts';
import { isReuse, refusedClientReason, vendorError } from '../base/failures.ts';
import { type RequestedApi, requestedApi, toResource } from '../base/request-extensions.ts';
import { thumbprintOf } from '../binding/proof-of-possession.ts';
import { TOKEN_EXCHANGE } from '../client/applications.ts';
import type { ClientDocuments } from '../client/client-documents.ts';
import { isTransferAudience, transferAudience } from '../session/session-transfer.ts';
import type { RefreshTargets } from './refresh.ts';
import type { VendorGrant } from './tokens.ts';

// docs/understand/decisions/tokens.md#audience-selects-the-api
/** Whether `audience` chooses the API; with the other grants it was chosen at /authorize. */
const choosesAudience = (grantType: string | undefined) => grantType !== 'authorization_code';

export interface TokenEndpoint {
  /**
   * `POST /oauth/token`.
   * @param fields the request's parameters; those of its body by default.
   */
  token(ctx: Context, fields?: Record<string, string>): Promise<void>;
  /** `POST /oauth/revoke` (RFC 7009). */
  revoke(ctx: Context): Promise<void>;
}

interface TokenEndpointDependencies {
  config: Pick<Config, 'settings' | 'resourceServer' | 'client'>;
  documents: Pick<ClientDocuments, 'renewKeys'>;
  recordUse(clientId: string): Promise<void>;
  failures: EngineFailures;
  enter: EnterEngine;
  events: Events;
  grants: readonly Pick<VendorGrant, 'grantType' | 'events'>[];
  secondFactor: Pick<SecondFactor, 'error'>;
  machines: Pick<MachineOrganizations, 'remember'>;
  targets: Pick<RefreshTargets, 'remember'>;
  signing: Pick<Signing, 'ready'>;
  certificates: Pick<ClientCertificates, 'of'>;
  measures?: Pick<Measures, 'tokensIssued'> | undefined;
}

const STANDARD_FAILURES: ReadonlyMap<string, EventType> = new Map([
  ['authorization_code', engineEvents.feacft],
  ['refresh_token', engineEvents.fertft],
  ['client_credentials', engineEvents.feccft],
]);

/** Errors after which a polling client asks again. They are not logged as failures. */
const POLLING_ERRORS = ['authorization_pending', 'slow_down'];

export function tokenEndpoint({
  config,
  documents,
  recordUse,
  failures,
  enter,
  events,
  grants,
  secondFactor,
  machines,
  targets,
  signing,
  certificates,
  measures,
}: TokenEndpointDependencies): TokenEndpoint {
  const retryErrors = new Set([...POLLING_ERRORS, secondFactor.error]);
  /**
   * Returns why an application was not authenticated, which the answer does not say, and the certificate that it presented, in
   * the forms in which one is registered.
   */
  const refusalOf = (ctx: Context): { details?: Record<string, unknown> } => {
    const reason = refusedClientReason(failures.of(ctx));
    if (reason === undefined) return {};
    const presented = certificates.of(ctx.req);
    if (presented === undefined || 'fault' in presented) return { details: { reason } };
    const { raw } = presented.certificate;
    const certificate = { subject_dn: formatName(subjectOf(raw)), thumbprint_sha256: thumbprintOf(raw) };
    return { details: { reason, client_certificate: certificate } };
  };
  const failureEvent = (grantType: string | undefined): EventType | undefined =>
    STANDARD_FAILURES.get(grantType ?? '') ??
    grants.find((grant) => grant.grantType === grantType)?.events.failure;
  const answer = async (ctx: Context, fields: Record<string, string>): Promise<AuthError | undefined> => {
    await refuseForeignPage(config, ctx, fields.client_id);
    await documents.renewKeys(ctx, fields.client_assertion);
    if (fields.grant_type === 'client_credentials' && fields.organization)
      machines.remember(ctx.req, fields.organization);
    const api = await requestedApi(config, fields);
    if ('fault' in api) throw new AuthError(400, 'invalid_target', api.fault);
    setParsedBody(
      ctx,
      fields.grant_type === 'refresh_token'
        ? refreshFields(targets, ctx, fields, api)
        : engineFields(ctx, fields, api),
    );
    // The engine would answer browsers in HTML.
    ctx.req.headers.accept = 'application/json';
    // Checked before a code or a token is used up.
    const ready = signing.ready();
    if (ready !== undefined) await ready;
    await enter(ctx);
    if (ctx.status < 400) {
      sayNothingGranted(ctx, fields);
      return undefined;
    }
    const error = vendorError(failures.of(ctx), fields.grant_type);
    if (error !== undefined) oauthShape(ctx, error);
    return error;
  };
  return {
    token: async (ctx, fields = tokenFields(ctx)) => {
      ctx.url = '/oauth/token';
      const error = await answer(ctx, fields);
      // An answer of 200 has a registered grant type, so the label has few values.
      const { client } = (ctx as { oidc?: Partial<KoaContextWithOIDC['oidc']> }).oidc ?? {};
      if (ctx.status === 200 && client !== undefined) await recordUse(client.clientId);
      if (ctx.status === 200) measures?.tokensIssued(fields.grant_type ?? 'none');
      if (error === undefined || retryErrors.has(error.error)) return;
      const type =
        fields.grant_type === 'refresh_token' && isReuse(failures.of(ctx))
          ? engineEvents.ferrt
          : (exchangeEvents.of(ctx)?.failure ?? failureEvent(fields.grant_type));
      if (type === undefined) return;
      const description = error.error_description;
      events.record({ type, ...partiesOf(ctx), description, ...refusalOf(ctx) });
    },
    revoke: async (ctx) => {
      ctx.url = '/oauth/revoke';
      await answer(ctx, bodyFields(ctx));
      if (ctx.status < 400) ctx.type = 'application/json';
    },
  };
}

/**
 * Refuses a page that is not of the application that it names: with the codes and passwords of others, every site could
 * have its visitors try them.
 */
async function refuseForeignPage(
  config: Pick<Config, 'client'>,
  ctx: Context,
  clientId: string | undefined,
): Promise<void> {
  const origin = foreignPage(ctx);
  if (origin === undefined) return;
  const client = clientId === undefined ? undefined : await config.client(clientId);
  if (client !== undefined && isOriginOf(client, origin)) return;
  throw new AuthError(403, 'access_denied', 'The page is not one of the application.');
}

// docs/understand/decisions/tokens.md#the-token-response-contains-scope
/**
 * Adds an empty `scope` to tokens of a request none of whose scopes was granted. The member has to say what differs from
 * the request (RFC 6749 §5.1), and the engine leaves it out. A token that is no access token (RFC 8693 §2.2.1) has no scopes.
 */
function sayNothingGranted(ctx: Context, { scope }: Record<string, string>): void {
  const { entities } = (ctx as { oidc?: Partial<KoaContextWithOIDC['oidc']> }).oidc ?? {};
  const requested = scope || entities?.AuthorizationCode?.scope;
  const body = ctx.body as { token_type?: string; scope?: string } | undefined;
  if (requested && body?.token_type !== undefined && body.token_type !== 'N_A') body.scope ??= '';
}

/** Parameters that are JSON: in a JSON body SDKs send them as objects. */
const JSON_PARAMETERS = ['authn_response', 'authorization_details'];

function tokenFields(ctx: Context): Record<string, string> {
  const body = bodyObject(ctx);
  const objects = JSON_PARAMETERS.filter((name) => typeof body[name] === 'object');
  if (objects.length === 0) return bodyFields(ctx);
  const others = Object.keys(body).filter((name) => !objects.includes(name));
  return {
    ...bodyFields(ctx, others),
    ...Object.fromEntries(objects.map((name) => [name, JSON.stringify(body[name])])),
  };
}

/** Returns the application and user of a failed exchange, as far as they are known. */
function partiesOf(ctx: Context): { client_id?: string; user_id?: string; ip: string } {
  const { client, entities } = (ctx as { oidc?: Partial<KoaContextWithOIDC['oidc']> }).oidc ?? {};
  const { Account, AuthorizationCode, RefreshToken } = entities ?? {};
  const userId = Account?.accountId ?? AuthorizationCode?.accountId ?? RefreshToken?.accountId;
  return {
    ip: ctx.ip,
    ...(client !== undefined && { client_id: client.clientId }),
    ...(userId !== undefined && { user_id: userId }),
  };
}

/**
 * Returns the parameters of a refresh for the engine, without the API: refresh.ts decides on it once the
 * engine has verified the token.
 */
function refreshFields(
  targets: Pick<RefreshTargets, 'remember'>,
  ctx: Context,
  { audience: _a, resource: _r, scope, authorization_details: details, ...fields }: Record<string, string>,
  api: RequestedApi,
): Record<string, string> {
  const identifier = apiOrTransfer(ctx, api.identifier);
  targets.remember(ctx.req, { identifier, isResource: api.isResource, scope, details });
  return fields;
}

/** Returns the API that a request names; undefined for a session transfer token, which is for no API. */
function apiOrTransfer(ctx: Context, identifier: string | undefined): string | undefined {
  if (identifier === undefined || !isTransferAudience(ctx, identifier)) return identifier;
  transferAudience.set(ctx, identifier);
  return undefined;
}

function engineFields(
  ctx: Context,
  { audience: _a, resource: _r, ...fields }: Record<string, string>,
  api: RequestedApi,
): Record<string, string> {
  // With a code `audience` is ignored; a `resource` must have been granted (RFC 8707 §2.2), which the engine checks.
  const identifier =
    fields.grant_type === TOKEN_EXCHANGE ? apiOrTransfer(ctx, api.identifier) : api.identifier;
  const target = choosesAudience(fields.grant_type) || api.isResource ? identifier : undefined;
  return target ? { ...fields, resource: toResource(target) } : fields;
}
