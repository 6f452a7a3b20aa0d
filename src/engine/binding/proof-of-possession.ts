// Sender-constrained access tokens: decides which tokens are bound to a key of the client, and verifies that a
// request with such a token proves the key, by a client certificate (RFC 8705 §3) or by a DPoP proof (RFC 9449).
// All checks of either are here.

import type { IncomingMessage } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import type Provider from 'oidc-provider';
import {
  type AccessToken,
  type Client,
  type ClientCredentials,
  type Configuration,
  errors,
  type KoaContextWithOIDC,
} from 'oidc-provider';
import { jwtHeader, unverifiedClaims } from '../../capabilities/signing/verify-jwt.ts';
import type { ClientCertificates } from '../../capabilities/tls/client-certificates.ts';
import { AuthError } from '../../http/errors.ts';
import type { ResourceServer } from '../../records/collections.ts';
import type { Clock } from '../../runtime/clock.ts';
import { isSameSecret, type Random, sha256 } from '../../runtime/secrets.ts';
import type { Store } from '../../store/contract.ts';
import { sharedSecret } from '../../store/shared-secret.ts';
import type { Config } from '../../tenant/config.ts';
import { exchangeLimits } from '../admission/exchange-context.ts';
import { engineDpop, type Nonces } from '../base/internals.ts';
import { toAudience } from '../base/request-extensions.ts';
import { applicationSettings, refuseNoncompliant } from '../client/applications.ts';
import { steadyNonces, type UsedProofs, usedProofs } from './used-proofs.ts';

// DPoP (RFC 9449): the engine's verification of proofs, for its endpoints and for ours.

/** Asymmetric algorithms, without those that FAPI 2.0 Security Profile §5.4.1 forbids. */
export const DPOP_ALGORITHMS = ['ES256', 'ES384', 'PS256', 'Ed25519', 'EdDSA'] as const;

/** A verified proof. Whether it is used for the first time is checked separately. */
export interface DpopProof {
  /** The thumbprint of its key (RFC 7638). */
  thumbprint: string;
  jti: string;
  /** Epoch seconds. */
  iat: number;
}

/** The state of a tenant's DPoP: which proofs were used, and the nonces. */
export interface ProofState {
  usedProofs: UsedProofs;
  /** The secret that the engine's nonces are derived from (§8): 32 bytes, the same in every process of a tenant. */
  nonceSecret: Buffer;
  /** The nonces that the engine uses instead of its own, where one process serves alone. */
  nonces?: Nonces;
}

const NONCES = 'dpop-nonces';

export async function loadProofState(deps: {
  store: Store;
  random: Random;
  clock: Clock;
  wallClock: Clock;
}): Promise<ProofState> {
  const used = await usedProofs(deps);
  if (deps.store.exclusive !== true)
    return { usedProofs: used, nonceSecret: await sharedSecret(deps, NONCES) };
  const nonceSecret = deps.random(32);
  return { usedProofs: used, nonceSecret, nonces: steadyNonces(nonceSecret, deps.clock) };
}

export function dpopFeature(
  { config }: { config: Config },
  { nonceSecret, usedProofs: used }: ProofState,
): NonNullable<Configuration['features']>['dPoP'] {
  return {
    enabled: true,
    nonceSecret,
    // The engine asks this first, at each proof: what it does not check itself is refused here.
    requireNonce: (ctx) => {
      refuseHeader(ctx);
      const { flags } = config.settings().tenant;
      return flags.require_dpop_nonce === true || used.needsNonce(dateInProof(ctx, 'iat'));
    },
  };
}

/** @throws errors.InvalidDpopProof for a proof with critical extensions, which none supports (RFC 7515 §4.1.11). */
function refuseHeader(ctx: Pick<Context, 'get'>): void {
  try {
    jwtHeader(ctx.get('DPoP'), ['dpop+jwt']);
  } catch (cause) {
    throw new errors.InvalidDpopProof('invalid DPoP key binding', { cause });
  }
}

/** The `WWW-Authenticate` challenge for tokens that are bound to a key (§7.1). */
export function dpopChallenge({ error, description }: { error?: string; description?: string }): string {
  const members = [
    ...(error === undefined ? [] : [`error="${error}"`]),
    ...(description === undefined ? [] : [`error_description="${description}"`]),
    `algs="${DPOP_ALGORITHMS.join(' ')}"`,
  ];
  return `DPoP ${members.join(', ')}`;
}

export interface DpopProofs {
  /**
   * Verifies the proof of a request: signature, key, `htm`, `htu`, `iat` or nonce, and `ath` where there is a token
   * (§4.3).
   * @returns undefined when there is none.
   * @throws errors.InvalidDpopProof; errors.UseDpopNonce, the nonce in the header of the answer.
   */
  read(ctx: Context, accessToken: string): Promise<DpopProof | undefined>;
  /** As `read`, for a request to an endpoint of the engine, which records the use of the proof itself. */
  readInEngine(ctx: KoaContextWithOIDC): Promise<DpopProof | undefined>;
  /** Records the use of a proof. @throws errors.InvalidDpopProof for a proof that was used before (§11.1). */
  recordUse(proof: DpopProof, clientId: string): Promise<void>;
}

interface ServedOrigins {
  /** Our public origin. */
  baseUrl: string;
  config: Pick<Config, 'customOrigins'>;
}

/** Makes the verification of proofs for our own endpoints. */
function dpopProofs(
  provider: Provider,
  used: Pick<UsedProofs, 'recordUse'>,
  origins: ServedOrigins,
): DpopProofs {
  return {
    read: (ctx, accessToken) =>
      engineDpop.validateDpop(provider, engineContext(provider, ctx, origins), accessToken),
    readInEngine: (ctx) => engineDpop.validateDpop(provider, ctx),
    recordUse: async ({ jti }, clientId) => {
      if (await used.recordUse(clientId, jti)) return;
      throw new errors.InvalidDpopProof('DPoP proof JWT Replay detected');
    },
  };
}

/**
 * Wraps a request for the engine's verification. The engine compares `htu` with the URL of one of its own routes,
 * and our endpoints are none of them.
 */
function engineContext(
  provider: Provider,
  ctx: Context,
  { baseUrl, config }: ServedOrigins,
): KoaContextWithOIDC {
  const [path = ''] = ctx.originalUrl.split('?');
  const address = urlAtProofOrigin(ctx, config.customOrigins(), `${baseUrl}${path}`);
  const oidc = { provider, route: 'ours', urlFor: () => address };
  return Object.create(ctx, { oidc: { value: oidc } }) as KoaContextWithOIDC;
}

// DPoP proofs whose `nbf` is a few seconds ahead. FAPI 2.0 Security Profile §5.3.2.1 requires them to be accepted,
// because clocks differ. The engine rejects them and has no setting for it, so such a request waits until its `nbf`
// before anything of it is checked.
// docs/understand/decisions/clients-keys.md#a-request-whose-proof-has-an-nbf-a-few-seconds-ahead-waits

/** How far ahead `nbf` may be, milliseconds. */
const MAX_AHEAD_MS = 10_000;

/**
 * The most requests that wait at once, because anybody can make such a proof. Further ones do not wait, and the
 * engine rejects them.
 */
const MAX_WAITING = 100;

/** Added because a timer may fire a moment before the clock reaches its time, milliseconds. */
const TIMER_SLACK_MS = 20;

/** Returns a date in the proof of a request without verifying it, epoch seconds; NaN when there is none. */
function dateInProof(ctx: Pick<Context, 'get'>, name: 'iat' | 'nbf'): number {
  try {
    return Number(unverifiedClaims(ctx.get('DPoP'))[name]);
  } catch {
    return Number.NaN;
  }
}

/** Makes a middleware that lets requests with such a proof wait. @param most how many wait at once. */
export function waitForEarlyProofs(
  { wallClock }: { wallClock: Clock },
  most: number = MAX_WAITING,
): Middleware {
  let waiting = 0;
  return async (ctx, next) => {
    const left = ctx.get('DPoP') === '' ? 0 : dateInProof(ctx, 'nbf') * 1000 - wallClock();
    if (left > 0 && left <= MAX_AHEAD_MS && waiting < most) {
      waiting += 1;
      await wait(left + TIMER_SLACK_MS);
      waiting -= 1;
    }
    await next();
  };
}

// Finds the origin that a DPoP proof was made for (RFC 9449 §4.3). A tenant is served at its own origin and,
// through reverse proxies, at those of its custom domains. A proxy need not say which of them a request came to.
// docs/understand/decisions/clients-keys.md#a-dpop-proof-that-names-a-custom-domain-is-accepted-at-every-origin-of-the-tenant

/**
 * Returns the URL that `htu` of a request's proof has to match: at the custom origin that the proof names, if it
 * names one, and otherwise ours.
 * @param address the URL of the endpoint at our own origin.
 */
export function urlAtProofOrigin(ctx: Context, customOrigins: readonly string[], address: string): string {
  const proof = customOrigins.length === 0 ? '' : ctx.get('DPoP');
  if (proof === '') return address;
  const proofOrigin = customOrigins.find((origin) => origin === originOf(proof));
  return proofOrigin === undefined ? address : `${proofOrigin}${new URL(address).pathname}`;
}

/**
 * Reads the origin of `htu` without verifying the proof; the engine then verifies the proof against the resulting
 * URL.
 */
function originOf(proof: string): string | undefined {
  try {
    return URL.parse(String(unverifiedClaims(proof).htu))?.origin;
  } catch {
    return undefined;
  }
}

/** The key that a token is bound to: its `cnf` claim (RFC 7800 §3.1). */
export interface Confirmation {
  /** The thumbprint of a certificate (RFC 8705 §3.1). */
  'x5t#S256'?: string | undefined;
  /** The thumbprint of a DPoP key (RFC 9449 §6). */
  jkt?: string | undefined;
}

export interface BoundToken {
  /** Undefined for a bearer token. */
  cnf: Confirmation | undefined;
  clientId: string;
}

/**
 * Checks that a request with an access token proves the key that the token is bound to.
 * @throws AuthError 401 `invalid_token`, `invalid_dpop_proof` or `use_dpop_nonce`, with `WWW-Authenticate`.
 */
export type CheckPossession = (ctx: Context, token: string, bound: BoundToken) => Promise<void>;

/** The keys that a token request proves; its tokens are bound to them. */
export interface ProvenKeys {
  dPoP?: DpopProof | undefined;
}

export interface ProofOfPossession {
  check: CheckPossession;
  /**
   * Reads the proofs of a token request, before its code or token is used up.
   * @throws errors.InvalidDpopProof, errors.UseDpopNonce (RFC 9449 §5, §8).
   */
  readProofs(ctx: KoaContextWithOIDC): Promise<ProvenKeys>;
}

interface PossessionDependencies {
  baseUrl: string;
  config: Pick<Config, 'customOrigins'>;
  certificates: Pick<ClientCertificates, 'of'>;
  usedProofs: UsedProofs;
}

// docs/understand/decisions/clients-keys.md#all-our-endpoints-check-the-binding-of-a-token
/** Makes the checks for all our endpoints that read access tokens, and for the token endpoint. */
export function proofOfPossession(
  provider: Provider,
  { baseUrl, certificates, config, usedProofs }: PossessionDependencies,
): ProofOfPossession {
  const proofs = dpopProofs(provider, usedProofs, { baseUrl, config });
  /** The keys that token requests have proved, for access tokens in their bodies. */
  const proved = new WeakMap<IncomingMessage, ProvenKeys>();
  /** The tokens whose keys requests have proved. The router checks some tokens twice, but a proof is used once. */
  const checked = new WeakMap<IncomingMessage, { token: string; jkt: string | undefined }>();
  return {
    readProofs: async (ctx) => {
      const keys = { dPoP: await proofs.readInEngine(ctx) };
      proved.set(ctx.req, keys);
      return keys;
    },
    check: async (ctx, token, { cnf, clientId }) => {
      const { 'x5t#S256': thumbprint, jkt } = cnf ?? {};
      if (cnf !== undefined && thumbprint === undefined && jkt === undefined)
        throw refusal(ctx, 'Bearer', 'The access token is bound to an unknown key');
      if (cnf !== undefined && ctx.query.access_token !== undefined)
        throw refusal(
          ctx,
          jkt === undefined ? 'Bearer' : 'DPoP',
          'A bound access token does not come in a query',
        );
      if (thumbprint !== undefined && !presentsCertificate(certificates.of(ctx.req), thumbprint))
        throw refusal(ctx, 'Bearer', 'The access token is bound to another client certificate');
      const request = proved.get(ctx.req);
      const earlier = checked.get(ctx.req);
      if (earlier?.token === token && earlier.jkt === jkt) return;
      if (request === undefined) {
        await checkDpop(proofs, ctx, token, { jkt, clientId });
        checked.set(ctx.req, { token, jkt });
      } else if (jkt !== undefined && request.dPoP?.thumbprint !== jkt)
        throw refusal(ctx, 'DPoP', 'The access token is bound to another key');
    },
  };
}

/**
 * Requires a token that is bound to a DPoP key to come with the scheme `DPoP` and a proof of the key, and any other
 * not to (RFC 9449 §7.1). With the scheme `Bearer`, in a body or in a query, a stolen token could be used without
 * its key (§7.2).
 */
async function checkDpop(
  proofs: DpopProofs,
  ctx: Context,
  token: string,
  { jkt, clientId }: { jkt: string | undefined; clientId: string },
): Promise<void> {
  const presented = presentedToken(ctx);
  const isByScheme = presented?.scheme === 'dpop' && presented.value === token;
  if (jkt === undefined && !isByScheme) return;
  if (jkt === undefined) throw refusal(ctx, 'DPoP', 'The access token is not bound to a DPoP key');
  if (!isByScheme) throw refusal(ctx, 'DPoP', 'The access token is bound to a DPoP key');
  try {
    const proof = await proofs.read(ctx, token);
    if (proof === undefined) throw new errors.InvalidDpopProof('The DPoP header is missing');
    if (proof.thumbprint !== jkt) throw refusal(ctx, 'DPoP', 'The access token is bound to another key');
    await proofs.recordUse(proof, clientId);
  } catch (thrown) {
    if (!(thrown instanceof errors.OIDCProviderError)) throw thrown;
    const { error, error_description: description = 'The DPoP proof is invalid' } = thrown;
    throw refusal(ctx, 'DPoP', description, error);
  }
}

/** An access token in the `Authorization` header, by its scheme (RFC 6750 §2.1; RFC 9449 §7.1). */
interface PresentedToken {
  scheme: 'bearer' | 'dpop';
  value: string;
}

/**
 * Reads the access token from the `Authorization` header.
 * @returns undefined for no header, and for one of another scheme or form.
 */
export function presentedToken(ctx: Context): PresentedToken | undefined {
  const [, scheme, value] = /^(Bearer|DPoP) ([^\s]+)$/i.exec(ctx.get('Authorization')) ?? [];
  if (scheme === undefined || value === undefined) return undefined;
  return { scheme: scheme.toLowerCase() === 'dpop' ? 'dpop' : 'bearer', value };
}

function refusal(ctx: Context, scheme: 'Bearer' | 'DPoP', description: string, error = 'invalid_token') {
  const bearer = `Bearer error="${error}", error_description="${description}"`;
  ctx.set('WWW-Authenticate', scheme === 'DPoP' ? dpopChallenge({ error, description }) : bearer);
  return new AuthError(401, error, description);
}

function presentsCertificate(shown: ReturnType<ClientCertificates['of']>, thumbprint: string): boolean {
  if (shown === undefined || 'fault' in shown) return false;
  return isSameSecret(thumbprintOf(shown.certificate.raw), thumbprint);
}

/** Returns the SHA-256 thumbprint of a certificate (RFC 8705 §3.1). @param der the certificate, DER. */
export function thumbprintOf(der: Uint8Array): string {
  return sha256(der);
}

/** Returns the key that an opaque access token is bound to. */
export function confirmationOfToken(token: object): Confirmation | undefined {
  const { 'x5t#S256': thumbprint, jkt } = token as Confirmation;
  return thumbprint === undefined && jkt === undefined ? undefined : { 'x5t#S256': thumbprint, jkt };
}

/** Returns the `cnf` of a verified token's claims. */
export function confirmationOf({ cnf }: Readonly<Record<string, unknown>>): Confirmation | undefined {
  return typeof cnf === 'object' && cnf !== null ? cnf : undefined;
}

/** Returns the confirmation of tokens for the keys that their request has proved. */
export function confirmationOfKeys({ dPoP }: ProvenKeys): Confirmation {
  return { jkt: dPoP?.thumbprint };
}

/**
 * Returns how a token for an API has to be bound; undefined when it need not be.
 * @param api undefined for a token that is for no API.
 */
function requiredBinding(
  ctx: KoaContextWithOIDC | undefined,
  client: Client,
  api: ResourceServer | undefined,
): 'dpop' | 'mtls' | 'any' | undefined {
  const { requirePossession, isPublic } = applicationSettings(client);
  const { mechanism, required, required_for: whom } = api?.proof_of_possession ?? {};
  if (mechanism !== undefined && required === true && (whom !== 'public_clients' || isPublic))
    return mechanism;
  const isExchangeOfBound = ctx !== undefined && exchangeLimits.of(ctx)?.isBound === true;
  return requirePossession || isExchangeOfBound ? 'any' : undefined;
}

/**
 * Refuses to issue an unbound token where one bound to a key is required.
 * @throws errors.InvalidDpopProof; errors.InvalidRequest where no DPoP proof would help.
 */
export function refuseUnbound(
  ctx: KoaContextWithOIDC | undefined,
  client: Client,
  api: ResourceServer | undefined,
  { jkt, 'x5t#S256': thumbprint }: Confirmation,
): void {
  const binding = requiredBinding(ctx, client, api);
  if (binding === undefined) return;
  if (binding !== 'mtls' && jkt !== undefined) return;
  if (binding !== 'dpop' && thumbprint !== undefined) return;
  if (binding === 'mtls')
    throw new errors.InvalidRequest('the API takes tokens bound to a client certificate alone');
  // Tokens from /authorize are never bound.
  if (ctx?.oidc.params?.response_type !== undefined)
    throw new errors.InvalidRequest(
      'an access token that is bound to a key is had from the token endpoint alone',
    );
  throw new errors.InvalidDpopProof('DPoP proof is required');
}

/** Refuses to issue an access token that must be bound to a key and is not. */
export async function refuseUnboundToken(
  { config }: { config: Config },
  ctx: KoaContextWithOIDC,
  token: AccessToken | ClientCredentials,
): Promise<void> {
  const resource = token.resourceServer?.identifier();
  const api = resource === undefined ? undefined : await config.resourceServer(toAudience(resource));
  const { client } = token as { client?: Client };
  if (client === undefined) return;
  const { jkt, 'x5t#S256': thumbprint } = token;
  refuseNoncompliant(client, api, { dpop: jkt !== undefined, mtls: thumbprint !== undefined });
  refuseUnbound(ctx, client, api, token);
}
