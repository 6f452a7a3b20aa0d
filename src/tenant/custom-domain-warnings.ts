// Warnings about custom domains. They are answered, but issuers do not follow the domain of the request.
// docs/understand/decisions/clients-keys.md#issuers-do-not-follow-a-custom-domain

import type { Frozen } from '../records/base/record.ts';
import type { DocumentRecord } from '../records/tenant/documents.ts';
import type { Store } from '../store/contract.ts';

/** Returns what a custom domain is not good for; undefined for the server's own host. */
export function customDomainWarning(domain: unknown, baseUrl: string): string | undefined {
  const { host, hostname, origin } = new URL(baseUrl);
  const name = String(domain).toLowerCase();
  if (name === host || name === hostname) return undefined;
  return `requests to ${name} are answered, but discovery, iss and redirects name ${origin}, and a login that begins at ${name} loses its cookie on the way: begin logins at ${origin}, or set BASE_URL to https://${name}`;
}

export function customDomainWarnings(
  { customDomains = [] }: { customDomains?: readonly Readonly<Record<string, unknown>>[] | undefined },
  baseUrl: string,
): string[] {
  return customDomains.flatMap(({ domain }, index) => {
    const warning = customDomainWarning(domain, baseUrl);
    return warning === undefined ? [] : [`customDomains[${index}].domain: ${warning}`];
  });
}

export async function storedDomainWarnings(store: Store, baseUrl: string): Promise<string[]> {
  const found: Frozen<DocumentRecord>[] = await store.collection('documents').findBy('kind', 'custom-domain');
  return found.flatMap(({ body }) => customDomainWarning(body.domain, baseUrl) ?? []);
}
