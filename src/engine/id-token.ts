// What an ID token says, beyond what the engine puts into it.
import type { Client, KoaContextWithOIDC } from 'oidc-provider';
import type { Config } from '../tenant/config.ts';
import { applicationSettings } from './applications.ts';
import type { CustomClaims } from './custom-claims.ts';
import { actorOf } from './exchanged.ts';
import type { LoginActions } from './login-actions.ts';
import { organizationOf } from './organizations.ts';
import { hasStandardClaims, type IdTokenParts, standardIdToken } from './standard-claims.ts';

/** An ID token of the engine's, as it is being made. */
export interface IdTokenInstance extends IdTokenParts {
  client: Client;
  ctx: KoaContextWithOIDC;
  payload(): Promise<Record<string, unknown>>;
}

/** Adapts the claims of the ID tokens that an engine makes. @param model the engine's class of them. */
export function adaptIdToken(
  model: { prototype: IdTokenInstance },
  {
    config,
    customClaims,
    loginActions,
  }: { config: Config; customClaims: CustomClaims; loginActions: Pick<LoginActions, 'claimsOf'> },
): void {
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
    const ofActions = loginActions.claimsOf(this.ctx)?.idToken;
    const act = actorOf(this.ctx);
    return { ...declared, ...ofActions, ...(await payload.call(this)), ...(act && { act }) };
  };
}

/**
 * The `amr` of ID tokens: only `mfa`, as with the hosted service. Applications take any `amr` for a second factor.
 */
function claimedMethods(methods: unknown): string[] | undefined {
  return Array.isArray(methods) && methods.includes('mfa') ? ['mfa'] : undefined;
}
