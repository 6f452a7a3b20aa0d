// The identifier of the Management API, in a file of its own so that commands can import it without loading the API.
import { isIP } from 'node:net';

/** @param issuer with its slash at the end. */
export const managementAudience = (issuer: string): string => `${issuer}api/v2/`;

// docs/understand/decisions/management-api.md#an-audience-with-an-asterisk-names-this-servers-management-api-in-the-device-flow-alone
/**
 * Returns the audience by which the vendor's own programs ask for the Management API of the tenant that their user logs in to:
 * `https://*.example.com/api/v2/` for the issuer `https://login.example.com/`. It is compared as a text.
 * @param issuer with its slash at the end.
 * @returns undefined where nothing is left of the host that only its owner can have: an address, `localhost`, `example.com`.
 */
export function wildcardAudience(issuer: string): string | undefined {
  const { protocol, hostname, port, pathname } = new URL(issuer);
  if (protocol !== 'https:' || pathname !== '/' || isIP(hostname) !== 0) return undefined;
  const parent = hostname.slice(hostname.indexOf('.') + 1);
  if (!parent.includes('.') || hostname === parent) return undefined;
  return managementAudience(`https://*.${parent}${port === '' ? '' : `:${port}`}/`);
}
