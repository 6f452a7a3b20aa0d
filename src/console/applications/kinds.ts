// The kinds of applications, and what a new one of each has.
import type { Kind } from './snippets.ts';

export const KINDS: readonly Kind[] = ['spa', 'regular_web', 'native', 'non_interactive'];

/** Whether users log in to applications of a kind. */
export const hasUsers = (kind: Kind): boolean => kind !== 'non_interactive';

/** What a new application has. @param callback where its users come back to; none for one that has no users. */
export function newApplication(kind: Kind, name: string, callback: string | undefined): object {
  const isPublic = kind === 'spa' || kind === 'native';
  const origin = callback === undefined ? undefined : originOf(callback);
  return {
    name,
    app_type: kind,
    oidc_conformant: true,
    token_endpoint_auth_method: isPublic ? 'none' : 'client_secret_post',
    grant_types: hasUsers(kind) ? ['authorization_code', 'refresh_token'] : ['client_credentials'],
    ...(callback !== undefined && { callbacks: [callback] }),
    ...(origin !== undefined && { allowed_logout_urls: [origin] }),
    ...(origin !== undefined && kind === 'spa' && { web_origins: [origin] }),
  };
}

/** Where an application in a browser is at. @returns undefined for an address that no browser page has. */
function originOf(address: string): string | undefined {
  const url = URL.parse(address);
  return url !== null && ['http:', 'https:'].includes(url.protocol) ? url.origin : undefined;
}

/** The kind that an application is shown as. */
export function kindOf(type: unknown): Kind {
  return KINDS.find((kind) => kind === type) ?? 'regular_web';
}
