// The claims of ID tokens beyond those of the engine.
import type { Client, KoaContextWithOIDC } from 'oidc-provider';
import { jwtHeader } from '../../capabilities/signing/verify-jwt.ts';
import type { Config } from '../../tenant/config.ts';
import { actorOf } from '../admission/exchange-context.ts';
import { organizationOf } from '../admission/organizations.ts';
import type { CustomClaims } from '../claims/custom-claims.ts';
import { hasStandardClaims, type IdTokenParts, standardIdToken } from '../claims/standard-claims.ts';
import { applicationSettings } from '../client/applications.ts';
import type { LoginActions } from '../login/login-actions.ts';
import { ID_TOKEN_TYPES } from './sent-id-tokens.ts';

/** The engine's ID token while it is made. */
export interface IdTokenInstance extends IdTokenParts {
  client: Client;
  ctx: KoaContextWithOIDC;
  payload(): Promise<Record<string, unknown>>;
}

/** The engine's class of ID tokens. */
export interface IdTokenClass {
  prototype: IdTokenInstance;
  /** Verifies an `id_token_hint`. */
  validate(token: string, client: Client): Promise<unknown>;
}

/** Adds claims to the ID tokens of an engine. @param model the engine's class of ID tokens. */
export function adaptIdToken(
  model: IdTokenClass,
  {
    config,
    customClaims,
    loginActions,
  }: { config: Config; customClaims: CustomClaims; loginActions: Pick<LoginActions, 'claimsOf'> },
): void {
  const { validate } = model;
  // The engine verifies hints by their signature and claims alone.
  model.validate = async function validateHint(this: IdTokenClass, token, client) {
    jwtHeader(token, ID_TOKEN_TYPES);
    return validate.call(this, token, client);
  };
  const { payload } = model.prototype;
  model.prototype.payload = async function idTokenPayload(this: IdTokenInstance) {
    this.available = { ...this.available, amr: claimedMethods(this.available.amr) };
    if (hasStandardClaims(config, applicationSettings(this.client))) {
      standardIdToken(this, this.ctx.oidc.params?.response_type);
    }
    const declared = await customClaims.of({
      to: 'id_token',
      clientId: this.client.clientId,
      userId: String(this.available.sub),
      organization: organizationOf(this.ctx),
    });
    const actionClaims = loginActions.claimsOf(this.ctx)?.idToken;
    const act = actorOf(this.ctx);
    return { ...declared, ...actionClaims, ...(await payload.call(this)), ...(act && { act }) };
  };
}

/**
 * Returns the `amr` of ID tokens: only `mfa`, as with the hosted service. Applications take any `amr` as a sign of
 * a second factor.
 */
function claimedMethods(methods: unknown): string[] | undefined {
  return Array.isArray(methods) && methods.includes('mfa') ? ['mfa'] : undefined;
}
