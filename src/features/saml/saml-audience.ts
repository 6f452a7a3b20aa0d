// The audience of an assertion (SAML Core §2.5.1.4). A service provider accepts every assertion that names it, and an
// AuthnRequest does not prove its Issuer: without these checks one application could obtain assertions for another.
// docs/understand/decisions/saml.md#an-audience-is-not-taken-from-a-request-that-could-name-another-application

import { originTest } from '../../records/clients/allowed-urls.ts';
import type { Client } from '../../records/collections.ts';
import { withoutEnd } from '../../runtime/without-end.ts';
import type { Config } from '../../tenant/config.ts';
import type { ServiceProvider } from './service-provider.ts';

/**
 * Returns the audience of a service provider's assertions: the addon's, or the request's issuer if no other
 * application can have that name.
 * @param issuer of the request; undefined for an IdP-initiated login.
 * @param entityId our own, as the application knows it.
 * @returns undefined when the issuer may be another application's: then no assertion is issued.
 */
export async function audienceOf(
  config: Config,
  sp: ServiceProvider,
  issuer: string | undefined,
  entityId: string,
): Promise<string | undefined> {
  if (sp.audience !== undefined) return sp.audience;
  if (issuer === undefined) {
    return `urn:${config.settings().vendor_channel}:${entityId}:${sp.clientId}`;
  }
  return (await isOwnName(config, sp, issuer)) ? issuer : undefined;
}

/**
 * Returns whether an entity ID can only belong to this application. Another application with an audience has that
 * name and no other. One without an audience may have any name, except a URL on an origin that only this
 * application uses.
 */
export async function isOwnName(
  config: Config,
  { clientId, acsUrls }: ServiceProvider,
  name: string,
): Promise<boolean> {
  const origin = originOf(name);
  const isOwnOrigin = origin !== undefined && acsUrls.some((url) => originOf(url) === origin);
  const others = (await config.clients()).filter((client) => client.client_id !== clientId);
  return others.every((other) => {
    const addon = other.addons?.samlp;
    if (addon === undefined) return true;
    if (addon.audience !== undefined) return comparable(addon.audience) !== comparable(name);
    return isOwnOrigin && !uses(other, origin);
  });
}

/** Whether an application has an address on an origin, or a callback for which it may have one there. */
function uses(client: Client, origin: string): boolean {
  const { recipient, destination } = client.addons?.samlp ?? {};
  const callbacks = [...client.callbacks, recipient, destination].filter((one) => one !== undefined);
  const isOrigin = originTest([{ ...client, callbacks, allowed_origins: [], web_origins: [] }], (name) => ({
    name,
  }));
  return isOrigin(origin);
}

function originOf(name: string): string | undefined {
  const url = URL.parse(name);
  return url !== null && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

/** Normalizes an entity ID. Core §8.3.6 compares them exactly, but some service providers compare them loosely. */
function comparable(name: string): string {
  return withoutEnd(name.normalize('NFKC').trim().toLowerCase(), '/');
}
