// What the consent prompt has to ask the user for.
import type Provider from 'oidc-provider';
import { type AuthorizationDetail, detailsIn } from '../base/authorization-details.ts';
import { isOidcScope, requestedAudience, toAudience } from '../base/requested-audience.ts';
import { requestedClaims, scopesOfClaims } from '../claims/claims.ts';

type ConsentInteraction = Pick<InstanceType<Provider['Interaction']>, 'prompt' | 'params'>;

export interface MissingConsent {
  oidcScopes: string[];
  /** Scopes by API identifier. */
  apis: Record<string, string[]>;
  /** The requested authorization details (RFC 9396), and their API. */
  details: { audience: string | undefined; all: AuthorizationDetail[] };
}

/** The reason of a consent prompt for an API that requires consent each time. @see asksEachTime */
export const CONSENT_POLICY = 'consent_policy';

/** Returns what the user is asked to allow. */
export function missingConsent(interaction: ConsentInteraction): MissingConsent {
  const { missingOIDCScope = [], missingOIDCClaims = [] } = interaction.prompt.details as {
    missingOIDCScope?: string[];
    missingOIDCClaims?: string[];
  };
  const resources = resourceScopes(interaction);
  const oidcScopes = [...new Set([...missingOIDCScope, ...scopesOfClaims(missingOIDCClaims)])];
  // With `prompt=consent` nothing may be missing: then all that was requested is shown.
  const { params, prompt } = interaction;
  const all = detailsIn(params.authorization_details);
  const details = { audience: requestedAudience(params), all };
  const isMissing = oidcScopes.length > 0 || Object.keys(resources).length > 0;
  const isForDetails = all.length > 0 && !prompt.reasons.includes('consent_prompt');
  // With a consent policy everything is asked for again. If only the missing scopes were shown, the user would
  // allow the others unseen.
  const hasConsentPolicy = prompt.reasons.includes(CONSENT_POLICY);
  if (hasConsentPolicy || (!isMissing && !isForDetails)) return { ...requestedConsent(interaction), details };
  return { oidcScopes, apis: byAudience(resources), details };
}

function requestedConsent({ params }: ConsentInteraction): Omit<MissingConsent, 'details'> {
  const scopes = typeof params.scope === 'string' ? params.scope.split(' ') : [];
  const audience = requestedAudience(params);
  return {
    oidcScopes: [
      ...new Set([...scopes.filter(isOidcScope), ...scopesOfClaims(requestedClaims(params.claims))]),
    ],
    apis: audience === undefined ? {} : { [audience]: scopes.filter((scope) => !isOidcScope(scope)) },
  };
}

function byAudience(resources: Readonly<Record<string, string[]>>): Record<string, string[]> {
  return Object.fromEntries(
    Object.entries(resources).map(([resource, scopes]) => [
      toAudience(resource),
      scopes.filter((scope) => !isOidcScope(scope)),
    ]),
  );
}

/** Returns the API scopes without consent, by resource indicator. */
export function resourceScopes(interaction: ConsentInteraction): Record<string, string[]> {
  const { missingResourceScopes } = interaction.prompt.details as {
    missingResourceScopes?: Record<string, string[]>;
  };
  return missingResourceScopes ?? {};
}
