// Reads from an authorization request what it demands of the login.
import { requestedAudience } from '../base/requested-audience.ts';
import type { LoginRequirements } from './second-factor.ts';

/**
 * Returns the connection, the organization, the context classes and the API that an authorization request asks for.
 * `acr` in the `claims` parameter means the same as `acr_values` (OIDC Core §5.5.1.1).
 * @param params the engine's, already checked.
 */
export function loginRequirements(
  params: Readonly<Record<string, unknown>> | undefined,
): Pick<LoginRequirements, 'connection' | 'organization' | 'invitation' | 'acrValues' | 'audience'> {
  const { acr_values: acrValues, claims, connection, organization, invitation } = params ?? {};
  return {
    connection: named(connection),
    organization: named(organization),
    invitation: named(invitation),
    acrValues: [...String(acrValues ?? '').split(' '), ...acrClaims(claims)].filter(Boolean),
    audience: requestedAudience(params),
  };
}

const named = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined);

function acrClaims(claims: unknown): string[] {
  if (typeof claims !== 'string' || claims === '') return [];
  const { id_token } = JSON.parse(claims) as {
    id_token?: { acr?: { value?: unknown; values?: unknown } | null };
  };
  const { value, values } = id_token?.acr ?? {};
  return [value, ...(Array.isArray(values) ? values : [])].filter((one) => typeof one === 'string');
}
